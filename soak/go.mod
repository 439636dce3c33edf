module github.com/aip-gateway/aip-gateway/soak

go 1.26.0

require (
	github.com/aip-gateway/aip-gateway v0.0.0
	github.com/coder/websocket v1.8.14
	github.com/rabbitmq/amqp091-go v1.16.0
)

require (
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
)

replace github.com/aip-gateway/aip-gateway => ..

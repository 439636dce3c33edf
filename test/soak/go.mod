module github.com/aip-gateway/aip-gateway/test/soak

go 1.26.0

require (
	github.com/aip-gateway/aip-gateway v0.0.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/coder/websocket v1.8.14
	github.com/rabbitmq/amqp091-go v1.16.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
	go.opentelemetry.io/otel v1.46.0 // indirect
	go.opentelemetry.io/otel/trace v1.46.0 // indirect
)

replace github.com/aip-gateway/aip-gateway => ../..

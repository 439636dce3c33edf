module github.com/aip-gateway/aip-gateway/test/interop/a2a-go-23

go 1.26.0

replace github.com/aip-gateway/aip-gateway/test/interop/model => ../model

require (
	github.com/a2aproject/a2a-go/v2 v2.3.1
	github.com/aip-gateway/aip-gateway/test/interop/model v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
)

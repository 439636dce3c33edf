module github.com/aip-gateway/aip-gateway/interop/model

go 1.26.0

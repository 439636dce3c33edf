module github.com/aip-gateway/aip-gateway/test/interop/model

go 1.26.0

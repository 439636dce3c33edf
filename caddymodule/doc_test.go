package caddymodule

import (
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/golang-lru/v2/simplelru"
	_ "github.com/tidwall/gjson"
	_ "golang.org/x/tools/txtar"
)

// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// maxProducts is the most products of one task.
const maxProducts = 1000

// readProducts reads the products of a Task. Of those with the same id the last one counts.
func readProducts(v gjson.Result) (products []task.Product, err error) {
	if wire.Absent(v) {
		return nil, nil
	}
	if !v.IsArray() {
		return nil, wire.Refuse("the agent's answer has products that are no array")
	}
	made := make(map[string]int)
	jsonrpc.ForEach(v, func(_, one gjson.Result) bool {
		var p task.Product
		if p, err = readProduct(one); err != nil {
			return false
		}
		if jsonrpc.Member(one, "id").Str == "" {
			if made[p.ID]++; made[p.ID] > 1 {
				p.ID += "-" + strconv.Itoa(made[p.ID])
			}
		}
		if products = wire.PutProduct(products, p); len(products) > maxProducts {
			err = wire.Refuse("the agent's answer has more than %d products", maxProducts)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return products, nil
}

// readProduct reads one product. A Partner leaving out its id or its dataItems, both required by AIP (§4.4), is
// understood all the same: its name identifies it, as in A2A, or it is empty.
func readProduct(v gjson.Result) (p task.Product, err error) {
	if !v.IsObject() {
		return p, wire.Refuse("the agent's answer has a product that is no object")
	}
	var id, items gjson.Result
	var others rest
	jsonrpc.ForEach(v, func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			id = v
		case "name":
			p.Name = v.Str
		case "description":
			p.Description = v.Str
		case "dataItems":
			items = v
		default:
			others.add(key.Str, v)
		}
		return true
	})
	p.Extensions = others.extensions(productNames)
	if !wire.Absent(id) && id.Type != gjson.String {
		return task.Product{}, wire.Refuse("the agent's answer has a product whose id is no string")
	}
	if p.ID = id.Str; p.ID == "" {
		p.ID = "product"
		if p.Name != "" {
			p.ID += "-" + p.Name
		}
	}
	if len(p.ID) > wire.MaxID {
		return task.Product{}, wire.Refuse("the agent's answer has a product whose id is longer than %d bytes", wire.MaxID)
	}
	if p.DataItems, err = readItems(items); err != nil {
		return task.Product{}, err
	}
	return p, nil
}

// readItems reads an agent's data items.
func readItems(v gjson.Result) ([]task.DataItem, error) {
	if wire.Absent(v) {
		return nil, nil
	}
	if !v.IsArray() {
		return nil, wire.Refuse("the agent's answer has dataItems that are no array")
	}
	var items []task.DataItem
	many := false
	jsonrpc.ForEach(v, func(_, one gjson.Result) bool {
		if many = len(items) == wire.MaxItems; many {
			return false
		}
		items = append(items, readItem(one))
		return true
	})
	if many {
		return nil, wire.Refuse("the agent's answer has more than %d dataItems in one list", wire.MaxItems)
	}
	return items, nil
}

// readItem reads one data item of an agent. Unlike a caller's it is never refused: anything but a text, a file or data
// becomes a data item with the value as sent, so that nothing of a result is lost.
func readItem(v gjson.Result) task.DataItem {
	if !v.IsObject() {
		return readData(v, nil)
	}
	var it task.DataItem
	var kind, text, data gjson.Result
	var url string
	var others wire.Extensions
	jsonrpc.ForEach(v, func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v
		case "text":
			text = v
		case "name":
			it.Name = v.Str
		case "mimeType":
			it.MIMEType = v.Str
		case "uri":
			it.URI = v.Str
		case "url": // in some examples of v01.00, in place of uri
			url = v.Str
		case "bytes":
			it.Bytes = v.Str
		case "data":
			data = v
		case "metadata":
			if v.IsObject() {
				it.Metadata = wire.Line(v)
			}
		default:
			others.Add(key.Str, v)
		}
		return true
	})
	it.Metadata = others.Join(it.Metadata, family, itemNames)
	switch {
	case kind.Str == string(task.TextItem) && text.Type == gjson.String:
		said := task.DataItem{Kind: task.TextItem, Metadata: it.Metadata}
		wire.ReadText(&said, text)
		return said
	case kind.Str == string(task.FileItem) && (it.URI != "" || it.Bytes != "" || url != ""):
		it.Kind = task.FileItem
		if it.URI == "" {
			it.URI = url
		}
		if it.Bytes != "" { // AIP wants one of the two, and bytes need no permission to be read
			it.URI = ""
		}
		return it
	case kind.Str == string(task.DataKind) && !wire.Absent(data):
		return readData(data, it.Metadata)
	}
	return readData(v, nil)
}

// readData returns v as a data item.
func readData(v gjson.Result, metadata json.RawMessage) task.DataItem {
	it := task.DataItem{Metadata: metadata}
	wire.ReadData(&it, v)
	return it
}

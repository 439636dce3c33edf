// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
)

// AppendFileURI appends the URI of a file as a JSON string: its own, or, if the file has its bytes, one of the scheme
// data. otherwise is the media type of a file without one; it may be empty.
func AppendFileURI(dst []byte, it *task.DataItem, otherwise string) []byte {
	if it.Bytes == "" {
		return task.AppendString(dst, it.URI)
	}
	return task.AppendString(dst, "data:"+cmp.Or(it.MIMEType, otherwise)+";base64,"+it.Bytes)
}

// ReadDataURI reads a URI of the scheme data with its data in base64. ok is false for another URI, and for one without
// data. The results are views of uri.
func ReadDataURI(uri string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		return "", "", false
	}
	head, data, _ := strings.Cut(rest, ",")
	mime, encoded := strings.CutSuffix(head, ";base64")
	return mime, data, encoded && data != "" && IsBase64(data)
}

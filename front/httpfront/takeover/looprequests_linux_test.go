// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"strings"
)

// call is a request for a loop.
func call(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// requests are the requests of callers in a loop, and those left to net/http.
func requests() map[string]string {
	const post = "POST /first HTTP/1.1\r\nHost: x\r\n"
	all := map[string]string{
		"equal":               call("/first", "{}"),
		"two":                 call("/first", "{}") + call("/first", "{}"),
		"other length":        call("/first", "longer"),
		"no body":             call("/first", ""),
		"large":               call("/first", strings.Repeat("x", 7000)),
		"too large":           call("/first", strings.Repeat("x", 20000)),
		"end of line":         call("/first", "{}") + "\r\n" + call("/first", "{}"),
		"ends of line":        call("/first", "{}") + "\r\n\r\n\r\n" + call("/first", "{}"),
		"end of line only":    call("/first", "{}") + "\r\n",
		"trailing zero":       "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 02\r\n\r\n{}",
		"plus":                "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
		"huge":                "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
		"negative":            "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}",
		"two lengths":         "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"other lengths":       "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
		"length and chunks":   post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks":              "POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"no length":           "POST /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"expect":              "POST /first HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"upgrade":             post + "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
		"close":               "POST /first HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
		"keep alive":          "POST /first HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
		"1.0":                 "POST /first HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"1.0 keep alive":      "POST /first HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
		"get":                 "GET /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"head":                "HEAD /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"absolute":            "POST http://y/first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"two slashes":         "POST //y/first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"query":               "POST /first?a=b&c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"escapes":             "POST /f%69rst/%2f%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"encoded slash":       "POST /fir%2Fst HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"no host":             "POST /first HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"two hosts":           "POST /first HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
		"bad host":            "POST /first HTTP/1.1\r\nHost: x y\r\nContent-Length: 2\r\n\r\n{}",
		"empty host":          "POST /first HTTP/1.1\r\nHost: \r\nContent-Length: 2\r\n\r\n{}",
		"space before colon":  "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}",
		"folded":              "POST /first HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
		"bare line feeds":     "POST /first HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}",
		"a bare return":       "POST /first HTTP/1.1\r\nHost: x\r\nA: b\rc\r\nContent-Length: 2\r\n\r\n{}",
		"nul":                 "POST /first HTTP/1.1\r\nHost: x\r\nA: b\x00\r\nContent-Length: 2\r\n\r\n{}",
		"not ascii":           "POST /first HTTP/1.1\r\nHost: x\r\nA: \xe4\r\nContent-Length: 2\r\n\r\n{}",
		"tab":                 "POST /first HTTP/1.1\r\nHost: x\r\nA:\tb\t\r\nContent-Length: 2\r\n\r\n{}",
		"spaces after length": "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length:   2  \r\n\r\n{}",
		"same field twice":    "POST /first HTTP/1.1\r\nHost: x\r\nA: 1\r\nContent-Length: 2\r\na: 2\r\n\r\n{}",
		"other head":          "POST /first HTTP/1.1\r\nHost: x\r\nTraceparent: 00-1\r\nContent-Length: 2\r\n\r\n{}",
		"pragma":              "POST /first HTTP/1.1\r\nHost: x\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\n{}",
		"long head":           post + "A: " + strings.Repeat("x", 5000) + "\r\nContent-Length: 2\r\n\r\n{}",
		"nothing":             "",
		"a half":              "POST /first HT",
		"half a body":         "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
		"no request":          "hello\r\n\r\n",
		"smuggled":            post + "Content-Length: 34\r\n\r\nPOST /second HTTP/1.1\r\nHost: x\r\n\r\n",
		"expect other":        "POST /first HTTP/1.1\r\nHost: x\r\nExpect: much\r\nContent-Length: 2\r\n\r\n{}",
	}
	for name, line := range map[string]string{
		"list of lengths": "Content-Length: 2, 2", "hexadecimal": "Content-Length: 0x2", "exponent": "Content-Length: 2e0",
		"empty length": "Content-Length:", "no space": "Content-Length:2", "tabs": "Content-Length:\t2",
		"vertical tab": "Content-Length: \v2", "small": "content-length: 2", "large": "CONTENT-LENGTH: 2",
		"space in number": "Content-Length: 2 0", "lengths apart": "content-length: 2\r\nA: b\r\nContent-Length: 02",
		"overflow": "Content-Length: 18446744073709551618", "many zeros": "Content-Length: 0000000002",
		"not a length": "Content_Length: 7\r\nContent-Length: 2", "folded length": "Content-Length:\r\n 2",
		"quoted": "Content-Length: \"2\"", "full width": "Content-Length: \uff12",
	} {
		all["length, "+name] = "POST /first HTTP/1.1\r\nHost: x\r\n" + line + "\r\n\r\n{}"
	}
	for _, line := range []string{
		"transfer-encoding: chunked", "Transfer-Encoding: CHUNKED", "Transfer-Encoding:\tchunked",
		"Transfer-Encoding: identity",
		"Transfer-Encoding: x, chunked", "Transfer-Encoding: chunked, x", "Transfer-Encoding : chunked",
		"Transfer-Encoding: \vchunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
		"Transfer_Encoding: chunked", "Transfer-Encoding:", "Transfer-Encoding: chunked\x00",
		"Transfer-Encoding:\r\n chunked",
		"X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", " Transfer-Encoding: chunked",
		"\x00Transfer-Encoding: chunked", ": chunked", "no colon", "N\xc3\xa4me: x", "A(b): c", "TE: trailers",
		"Trailer: A", "Expect:", "Expect: 100-Continue", "Connection: keep-alive, close", "Connection: x",
		"Connection: keep-alive\r\nConnection: close", "Connection: keep-alive\r\nConnection: keep-alive",
		"Proxy-Connection: close", "Keep-Alive: timeout=5", "HTTP2-Settings: AAMAAABk", "Upgrade: websocket",
		"Host: x", "Host: y", "host: y", "Authorization: Bearer a", "Cookie: a=b\r\nCookie: c=d", "A: b\r\nA: c",
		strings.Repeat("A: b\r\n", 400) + "A: b",
	} {
		// The rest of the body, if it is in no chunks, is no request.
		all["field, "+line] = post + line + "\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
	}
	for _, line := range []string{
		"POST\t/first HTTP/1.1", "POST  /first HTTP/1.1", "POST /first  HTTP/1.1", "POST /first HTTP/1.1 ",
		" POST /first HTTP/1.1",
		"POST /first HTTP/1.2", "POST /first http/1.1", "POST /first HTTP/1.10", "POST /first HTTP/2.0", "POST /first",
		"post /first HTTP/1.1", "POSTS /first HTTP/1.1", "POST /first#part HTTP/1.1", "POST * HTTP/1.1",
		"POST first HTTP/1.1",
		"CONNECT x:1 HTTP/1.1", "OPTIONS * HTTP/1.1", "PRI * HTTP/2.0", "PUT /first HTTP/1.1", "POST /fi\x00rst HTTP/1.1",
		"POST /f\xc3\xa4rst HTTP/1.1", "POST /fi rst HTTP/1.1", "POST /first?a=%zz&;=b HTTP/1.1",
		"POST /./a/../first HTTP/1.1",
		"POST http://x/first HTTP/1.1", "POST https://x:0/first HTTP/1.1", "POST x:1 HTTP/1.1", "POST /first\r HTTP/1.1",
		"POST / HTTP/1.1", "POST /first\\..\\ HTTP/1.1", "POST /%00 HTTP/1.1",
	} {
		all["line, "+line] = line + "\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
	}
	for _, host := range []string{
		"x:80", "[::1]:80", "X", "x,y", "x@y", "x/y", "x\ty", "\xc3\xa4", "x:y:z", "[", "x%20", "_",
	} {
		all["host, "+host] = "POST /first HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 2\r\n\r\n{}"
	}
	// At the bounds of a loop: of heads, and of requests.
	for _, n := range []int{maxHead - 1, maxHead, maxHead + 1} {
		head := post + "Content-Length: 2\r\nA: "
		all[fmt.Sprint("head of ", n)] = head + strings.Repeat("x", n-len(head)-4) + "\r\n\r\n{}"
	}
	for _, n := range []int{maxRequest - 1, maxRequest, maxRequest + 1} {
		body := strings.Repeat("x", n-len(call("/first", strings.Repeat("x", 1000)))+1000)
		all[fmt.Sprint("request of ", n)] = call("/first", body)
	}
	for path := range answers {
		all["answer "+path] = call(path, "{}") // by a loop: with another call before it, it would be net/http's
	}
	return all
}

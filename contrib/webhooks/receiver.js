// SPDX-License-Identifier: Apache-2.0

const http = require("node:http");
const crypto = require("node:crypto");

const MAX_BODY = 64 << 20; // bytes
const MAX_AGE = 5 * 60; // seconds
const KEEP = 7 * 24 * 60 * 60; // seconds

const [kind, text] = process.env.WEBHOOK_KEY.split("_");
const key = Buffer.from(text, "base64");
const publicKey = kind === "whpk" &&
  crypto.createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x: key.toString("base64url") } });

function equal(a, b) { // in constant time
  const hash = (s) => crypto.createHash("sha256").update(s).digest();
  return crypto.timingSafeEqual(hash(a), hash(b));
}

function isSigned(message, signatures) {
  return signatures.split(" ").some((one) => {
    const [version, signature = ""] = one.split(",");
    if (publicKey) {
      return version === "v1a" && crypto.verify(null, message, publicKey, Buffer.from(signature, "base64"));
    }
    return version === "v1" && equal(signature, crypto.createHmac("sha256", key).update(message).digest("base64"));
  });
}

function isGood(headers, body) {
  const { "webhook-id": id = "", "webhook-timestamp": at = "", "webhook-signature": signatures = "" } = headers;
  return equal(headers["x-acps-aip-notification-token"] ?? "", process.env.WEBHOOK_TOKEN) &&
    Math.abs(Date.now() / 1000 - Number(at)) < MAX_AGE &&
    isSigned(Buffer.concat([Buffer.from(`${id}.${at}.`), body]), signatures);
}

const seen = new Map(); // ids, and when they came, in this order

function isNew(id) {
  const now = Date.now() / 1000;
  for (const [old, at] of seen) {
    if (now - at < KEEP) break;
    seen.delete(old);
  }
  return !seen.has(id) && seen.set(id, now);
}

function act(task) {
  console.log(task.id, task.status.state); // your work
}

http.createServer(async (req, res) => {
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of req) {
      size += chunk.length;
      if (size > MAX_BODY) return res.writeHead(413).end();
      chunks.push(chunk);
    }
  } catch {
    return res.destroy(); // the sender has gone
  }
  const body = Buffer.concat(chunks);
  if (!isGood(req.headers, body)) return res.writeHead(401).end();
  res.writeHead(204).end();
  if (isNew(req.headers["webhook-id"])) act(JSON.parse(body));
}).listen(8080);

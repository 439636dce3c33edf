#!/usr/bin/env bash
# @microsoft/fetch-event-source 2.0.1, the usual client of server-sent events by POST: a comment with a blank line behind
# it, the usual keep-alive, is a message with empty data for onmessage. So is `retry:` alone. By the standard of
# server-sent events, a blank line dispatches nothing where no data came. A comment without a blank line is silent.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @microsoft/fetch-event-source@2.0.1

cat > seen.cjs <<'JS'
const { getLines, getMessages } = require('@microsoft/fetch-event-source/lib/cjs/parse');
for (const text of [':\n', ': wait\n', ': wait\n\n', 'retry: 1000\n\n', 'retry: 1000\ndata: x\n\n']) {
  const seen = [];
  const messages = getMessages(() => {}, ms => seen.push(`retry ${ms}`), m => seen.push(`message ${JSON.stringify(m.data)}`));
  getLines(messages)(new TextEncoder().encode(text));
  console.log(JSON.stringify(text), '->', seen.join(', ') || 'nothing');
}
JS

diff - <(node seen.cjs) <<'SEEN'
":\n" -> nothing
": wait\n" -> nothing
": wait\n\n" -> message ""
"retry: 1000\n\n" -> retry 1000, message ""
"retry: 1000\ndata: x\n\n" -> retry 1000, message "x"
SEEN
echo "as described"

#!/usr/bin/env bash
# standardwebhooks 1.1.1 from npm: verify(body, headers, { jsonParse: false }) checks the signature and returns undefined,
# not the body; without the option it returns the parsed JSON. A receiver that goes on with what verify returns, as with
# svix 1.99.1, whose verify always returns the parsed body, has nothing.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund standardwebhooks@1.1.1 svix@1.99.1

cat > seen.mjs <<'JS'
import * as standard from 'standardwebhooks';
import * as svix from 'svix';

const secret = 'whsec_' + Buffer.from('a secret of 32 bytes for a test.').toString('base64');
const body = '{"state":"working"}', at = new Date();
const hook = new standard.Webhook(secret);
const names = prefix => ({ [`${prefix}-id`]: 'm', [`${prefix}-timestamp`]: `${Math.floor(at / 1000)}`,
  [`${prefix}-signature`]: hook.sign('m', at, body) });
const show = (what, value) => console.log(`${what}: ${JSON.stringify(value)}`);
show('standardwebhooks', hook.verify(body, names('webhook')));
show('standardwebhooks, jsonParse: false', hook.verify(body, names('webhook'), { jsonParse: false }));
show('svix', new svix.Webhook(secret).verify(body, names('svix')));
try {
  hook.verify(body + ' ', names('webhook'), { jsonParse: false });
} catch (e) {
  console.log(`another body: ${e.message}`);
}
JS

diff - <(node seen.mjs) <<'SEEN'
standardwebhooks: {"state":"working"}
standardwebhooks, jsonParse: false: undefined
svix: {"state":"working"}
another body: No matching signature found
SEEN
echo "as described"

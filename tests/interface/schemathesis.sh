#!/bin/sh
# Checks the interface against its own OpenAPI document with schemathesis (from PyPI): no 5xx,
# no status, content type or body that the document doesn't have. Usage:
#   tests/interface/schemathesis.sh [further arguments of `schemathesis run`]
# EXAMPLES (100) is how many requests are made up for each operation; MIDTURN_SERVE_SCRIPTED the
# built example `serve_scripted`, if it need not be built.
set -eu
cd "$(dirname "$0")/../.."

work=target/schemathesis
venv=$work/venv
mkdir -p "$work"
export HYPOTHESIS_STORAGE_DIRECTORY="$PWD/$work/hypothesis"
if [ ! -x "$venv/bin/schemathesis" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'schemathesis>=4,<5'
fi

program=${MIDTURN_SERVE_SCRIPTED:-}
if [ -z "$program" ]; then
    cargo build --quiet -p midturn-server --example serve_scripted
    program=${CARGO_TARGET_DIR:-target}/debug/examples/serve_scripted
fi
rm -f "$work/stdin" "$work/address"
mkfifo "$work/stdin"
"$program" <"$work/stdin" >"$work/address" 2>"$work/log" &
server=$!
# The server ends when the last writer of its standard input is gone.
exec 3>"$work/stdin"
end() {
    exec 3>&-
    wait "$server" || true
}
trap end EXIT

tries=0
until [ -s "$work/address" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$server"; then
        echo "the server did not start:" >&2
        cat "$work/log" >&2
        exit 1
    fi
    sleep 0.1
done
field() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/address" "$1"
}

# Event streams don't end, so whoever waits for their end waits for ever: the tests of the
# crate look at them. `$@` is what else is said.
check() {
    "$venv/bin/schemathesis" "$@" \
        --url "$(field url)" \
        --header "Authorization: Bearer $(field token)" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance,ignored_auth \
        --exclude-path-regex '/(events|stream)$' \
        --max-examples "${EXAMPLES:-100}" \
        --generation-deterministic \
        --request-timeout 60 \
        --warnings off \
        "$(field url)/v1/openapi.json"
}

echo "== what may not be there"
check run "$@"
echo "== what is there"
check --config-file tests/interface/schemathesis.toml run "$@"
echo "== what is asked"
check --config-file tests/interface/asking.toml run --include-path-regex approvals "$@"

#!/bin/sh
# Send generated requests to every route of `mnemic serve` and compare the answers with its schema:
# no 5xx, no undocumented status, type or shape. Extra arguments go to schemathesis, which needs an
# environment of its own:
#
#     python3 -m venv /tmp/schemathesis && /tmp/schemathesis/bin/pip install schemathesis
#     PATH=$PATH:/tmp/schemathesis/bin benchmarks/web_schema.sh --max-time 240 -n 15
set -eu
folder=$(mktemp -d)
port=${PORT:-8522}
mkdir "$folder/letters"
echo "The ferry leaves at nine." > "$folder/letters/a.txt"
MNEMIC_HOME=$folder/home ${PYTHON:-python} -m mnemic serve --port "$port" --no-open --folder "$folder/letters" &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$folder"' EXIT
api=http://127.0.0.1:$port/v1
until curl -sf "$api/health" > /dev/null; do sleep 0.3; done
token="Authorization: Bearer $(cat "$folder/home/serve.token")"
curl -sf -H "$token" -H 'Content-Type: application/json' -d '{"text": "The rent is 700 euros."}' \
    "$api/memories/default/notes" > /dev/null
# What fits the schema may still be refused: a name that is no memory's, a day that is none. DELETE
# stops a job, which stays in the list; and the id of a job that reads a text is not the text's.
schemathesis run "$api/openapi.json" -H "$token" --continue-on-failure --request-timeout 60 \
    --exclude-checks positive_data_acceptance,use_after_free,ensure_resource_availability "$@"

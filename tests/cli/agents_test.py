"""What programs read and write: agents_test.py FTAX. Every command's --json is what `ftax schema` says, and `ftax mcp` answers an
agent's session, errors among it. Skipped (77) without the package jsonschema.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

COMMANDS = (pathlib.Path(__file__).parent.parent / "report/documents.txt").read_text().splitlines()
ROWS = "gpu,framework,precision,model,batch,latency_ms\nT4,,fp32,resnet18,1,4.7\nT4,,fp32,resnet18,8,9.9\nT4,,fp32,unheard,1,3\n"
ONE = "graph one\ninput %x f32[4,64]\nweight %w f32[64,64]\n%y f32[4,64] = linear(%x, %w)\noutput %y\n"  # its width cannot grow
SEEING = (pathlib.Path(__file__).parent / "seeing.json").read_text()
OPERATORS = "gpu,op,precision,shape,latency_ms\nT4,linear,fp32,b=1 m=512 n=512 k=512,0.09\n"


def check_schemas(ftax):
    all_schemas = json.loads(subprocess.run([ftax, "schema"], capture_output=True, check=True).stdout)["$defs"]
    unused = set(all_schemas)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("ROWS", ROWS), ("OPERATORS", OPERATORS), ("ONE.txt", ONE), ("SEEING.json", SEEING)):
            with open(f"{folder}/{name}", "w") as file:
                file.write(rows)
        for command in COMMANDS:
            words = command.split()
            report = json.loads(subprocess.run([ftax, *words, "--json"], cwd=folder, capture_output=True, check=True).stdout)
            schema = json.loads(subprocess.run([ftax, "schema", words[0]], capture_output=True, check=True).stdout)
            Draft202012Validator.check_schema(schema)
            errors = [f"{error.json_path}: {error.message[:200]}" for error in Draft202012Validator(schema).iter_errors(report)]
            assert not errors, (command, errors)
            unused.discard(words[0])
            # A schema that anything passes would say nothing.
            assert not Draft202012Validator(schema).is_valid({**report, "unheard": 1}), command
    assert not unused, f"no command is held to {unused}"
    refused = subprocess.run([ftax, "schema", "nas"], capture_output=True, text=True)
    assert refused.returncode == 2 and "nas" in refused.stderr, refused


def check_session(ftax):
    def request(number, method, **parameters):
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})

    def call(number, name, **arguments):
        return request(number, "tools/call", name=name, arguments=arguments)

    bert = {"model": "bert", "device": "l4", "precision": "fp16", "dim": "seq=128"}
    lines = [
        request(1, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "test", "version": "1"}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), "",
        request(2, "tools/list"), request("ping", "ping"),
        call(3, "predict", **bert, batch=[1, 8]), call(4, "predict", **bert, batch="1,8"),
        call(5, "compare", **{**bert, "device": ["l4", "t4"]}, batch=8, strict=False),
        call(6, "inspect", model="alexnet", batch=1), call(7, "models"),
        call(8, "generate", model="llama-3-8b", device="h100-sxm5-80gb", framework="vllm", prompt=512, **{"new-tokens": 64}, tp=[1, 2]),
        call(9, "serve", model="llama-3-8b", device="h100-sxm5-80gb", framework="vllm", prompt=512, **{"new-tokens": 64}, rate=2, count=20),
        call(10, "predict", model="bert", device="l44", batch=1, dim="seq=128"), call(11, "predict", model="bert"),
        call(12, "predict", **bert, batch=1, bacth=2), call(13, "predict", **bert, batch={"a": 1}), call(14, "predict", **bert, strict="yes"),
        call(15, "predict", model="--html=evil", device="l4"), call(16, "remove"), request(17, "remove"),
        json.dumps({"jsonrpc": "2.0", "id": 18, "method": "tools/call", "params": [1]}),
        json.dumps({"jsonrpc": "2.0", "id": 19, "method": "tools/call", "params": {"name": 7}}),
        json.dumps({"jsonrpc": "2.0", "id": 20, "method": "tools/call", "params": {"name": "predict", "arguments": []}}),
        json.dumps({"id": 21}), "nonsense", "[" * 100_000, '{"jsonrpc":"2.0","id":22,"method":"ping","pad":"' + "x" * (2 << 20) + '"}',
        '{"jsonrpc":"2.0","id":23,"method":"tools/call","params":{"name":"\xff"}}', request(24, "ping"),
        request(25, "initialize", protocolVersion="1999-01-01", capabilities={}, clientInfo={"name": "test", "version": "1"}),
    ]
    session = subprocess.run([ftax, "mcp"], input="\n".join(lines).encode("latin-1"), capture_output=True, timeout=120)
    assert session.returncode == 0, session
    replies = [json.loads(line) for line in session.stdout.decode().splitlines()]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    by_id = {reply["id"]: reply for reply in replies if reply["id"] is not None}

    first = by_id[1]["result"]
    assert first["protocolVersion"] == "2025-03-26" and first["serverInfo"]["name"] == "ftax" and "tools" in first["capabilities"], first
    tools = {tool["name"]: tool for tool in by_id[2]["result"]["tools"]}
    assert {"predict", "compare", "serve", "generate", "inspect", "models"} <= set(tools), tools
    for tool in tools.values():
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["description"] and not {"html", "json", "csv"} & set(tool["inputSchema"]["properties"]), tool
    assert tools["predict"]["inputSchema"]["required"] == ["model", "device"]
    properties = tools["predict"]["inputSchema"]["properties"]
    assert "fp16" in properties["precision"]["examples"] and "examples" not in properties["dim"] and properties["strict"]["type"] == "boolean", properties
    for line in lines:
        message = json.loads(line) if line.startswith('{"jsonrpc') and len(line) < 1000 and "\xff" not in line else {}
        if message.get("method") == "tools/call" and message["id"] in range(3, 10):
            parameters, result = message["params"], by_id[message["id"]]["result"]
            Draft202012Validator(tools[parameters["name"]]["inputSchema"]).validate(parameters["arguments"])
            schema = json.loads(subprocess.run([ftax, "schema", parameters["name"]], capture_output=True, check=True).stdout)
            Draft202012Validator(schema).validate(result["structuredContent"])
            assert not result["isError"] and result["content"][0]["text"], result
    assert by_id["ping"]["result"] == {}
    assert by_id[3]["result"] == by_id[4]["result"]
    words = ["predict", "bert", "--device", "l4", "--precision", "fp16", "--dim", "seq=128", "--batch", "1,8", "--json"]
    assert by_id[3]["result"]["structuredContent"] == json.loads(subprocess.run([ftax, *words], capture_output=True, check=True).stdout)

    for number, word in ((10, "l44"), (11, "device"), (12, "bacth"), (13, "batch"), (14, "strict"), (15, "--html=evil"), (20, "object")):
        result = by_id[number]["result"]
        assert result["isError"] and word in result["content"][0]["text"], result
    codes = {number: by_id[number]["error"]["code"] for number in (16, 17, 18, 19)}
    assert codes == {16: -32602, 17: -32601, 18: -32602, 19: -32602}, codes
    without = [reply["error"]["code"] for reply in replies if reply["id"] is None]
    assert without == [-32600, -32700, -32700, -32600, -32700], without
    assert by_id[24]["result"] == {}  # it goes on after all of that
    newest = by_id[25]["result"]["protocolVersion"]  # that it speaks: never one that it does not know
    assert newest > first["protocolVersion"], newest


def check_limits(ftax):
    """A call that dies is answered, and the next is served; files outside of --root are refused, whichever path leads to them."""
    def session(*options, calls, folder="."):
        lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
                 for i, (name, arguments) in enumerate(calls)]
        done = subprocess.run([ftax, "mcp", *options], input="\n".join(lines), text=True, capture_output=True, cwd=folder, timeout=60, check=True)
        return [json.loads(line)["result"] for line in done.stdout.splitlines()]

    small = ("inspect", {"model": "resnet18", "batch": 1})
    endless = ("serve", {"model": "llama-3-8b", "device": "l40s", "framework": "vllm", "rate": 5, "prompt": 512, "new-tokens": 128, "count": 10_000_000})
    slow, after = session("--timeout", "1", calls=[endless, small])
    assert slow["isError"] and "more than 1 s" in slow["content"][0]["text"] and not after["isError"], (slow, after)
    large, after = session("--max-memory", "128", calls=[endless, small])
    assert large["isError"] and "128 MB" in large["content"][0]["text"] and not after["isError"], (large, after)
    with tempfile.TemporaryDirectory() as folder:
        inside, outside, link = (os.path.join(folder, name) for name in ("in/one.txt", "one.txt", "in/link.txt"))
        os.mkdir(os.path.dirname(inside))
        for path in (inside, outside):
            with open(path, "w") as file:
                file.write(ONE)
        os.symlink(outside, link)
        calls = [("inspect", {"model": path}) for path in ("one.txt", inside, "../one.txt", outside, "link.txt")]
        calls += [("predict", {"model": "one.txt", "device": "t4", "anchor": "../one.txt"})]
        answers = session("--root", os.path.dirname(inside), calls=calls)
        assert [answer["isError"] for answer in answers] == [False, False, True, True, True, True], answers
        assert all("outside of the folder --root" in answer["content"][0]["text"] for answer in answers[2:]), answers
    unknown = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x\u202e\u0000"})
    done = subprocess.run([ftax, "mcp"], input=unknown, text=True, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["error"]["message"] == "unknown method 'x\\u{202e}\\x00'", done.stdout
    refused = subprocess.run([ftax, "mcp", "--root", "/nowhere"], input="", text=True, capture_output=True, check=False)
    assert refused.returncode == 2 and "/nowhere" in refused.stderr, refused


if __name__ == "__main__":
    check_schemas(sys.argv[1])
    check_session(sys.argv[1])
    check_limits(sys.argv[1])

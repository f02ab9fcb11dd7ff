// A small model as an OpenAI-compatible server on loopback: node small_model.mjs MODEL.gguf PORT [CONTEXT]
// One thread: two on a busy two-core host fell to 0.3 tokens a second. Needs `npm install node-llama-cpp@3.21.1`.
import http from "node:http";
import {getLlama, LlamaChatSession} from "node-llama-cpp";
const [,, file, port, ctx] = process.argv;
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1});
const model = await llama.loadModel({modelPath: file});
// A sequence for each role: what its prompt begins with, the same for all operators, is read once.
const context = await model.createContext({contextSize: Number(ctx ?? 6144), threads: 1, sequences: 2});
const sequences = {code: context.getSequence(), json: context.getSequence()};
const grammars = new Map();
async function answer(body) {
  const history = []; let last = "";
  for (const m of body.messages) {
    if (m.role === "system") history.push({type: "system", text: m.content});
    else if (m.role === "assistant") { history.push({type: "user", text: last}); history.push({type: "model", response: [m.content]}); last = ""; }
    else last = m.content;
  }
  const schema = body.response_format?.json_schema?.schema;
  const sequence = schema ? sequences.json : sequences.code;
  const session = new LlamaChatSession({contextSequence: sequence});
  session.setChatHistory(history);
  const before = sequence.tokenMeter.getState();
  let grammar;
  if (schema) {
    const key = JSON.stringify(schema);
    if (!grammars.has(key)) grammars.set(key, await llama.createGrammarForJsonSchema(schema));
    grammar = grammars.get(key);
  }
  const r = await session.promptWithMeta(last, {temperature: body.temperature ?? 0, maxTokens: body.max_tokens ?? 1024, grammar});
  const used = sequence.tokenMeter.diff(before);
  const whole = sequence.nextTokenIndex - used.usedOutputTokens;
  session.dispose();
  return {text: r.responseText, finish: r.stopReason === "maxTokens" ? "length" : "stop", input: whole, read: used.usedInputTokens, output: used.usedOutputTokens};
}
let turn = Promise.resolve();
http.createServer((req, res) => {
  let data = "";
  req.on("data", (d) => { data += d; });
  req.on("end", () => {
    turn = turn.then(async () => {
      try {
        const body = JSON.parse(data);
        const a = await answer(body);
        res.writeHead(200, {"content-type": "application/json"});
        res.end(JSON.stringify({id: "c", object: "chat.completion", created: Math.floor(Date.now() / 1000), model: body.model,
          choices: [{index: 0, message: {role: "assistant", content: a.text}, finish_reason: a.finish}],
          usage: {prompt_tokens: a.input, completion_tokens: a.output, total_tokens: a.input + a.output,
            prompt_tokens_details: {cached_tokens: Math.max(0, a.input - a.read)}}}));
      } catch (e) {
        res.writeHead(500, {"content-type": "application/json"});
        res.end(JSON.stringify({error: {message: String(e), type: "server_error"}}));
      }
    });
  });
}).listen(Number(port), "127.0.0.1", () => console.log("listening"));

// Drives `stoker lsp` with the client library that editors use: node client.cjs STOKER FOLDER SCENARIO
'use strict';
const assert = require('assert');
const child_process = require('child_process');
const fs = require('fs');
const path = require('path');
const url = require('url');
const lsp = require('vscode-languageserver-protocol/node');

const [stoker, folder, scenario] = process.argv.slice(2);
const rules = new Set(process.env.STOKER_RULES.split(','));
const uriOf = name => url.pathToFileURL(path.join(folder, name)).href;

// One connection with what the server has published so far.
class Editor {
  constructor() {
    this.process = child_process.spawn(stoker, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: '/' });
    this.exited = new Promise(resolve => this.process.on('exit', resolve));
    this.connection = lsp.createProtocolConnection(
      new lsp.StreamMessageReader(this.process.stdout), new lsp.StreamMessageWriter(this.process.stdin));
    this.published = [];
    this.waiting = [];
    this.shown = [];
    this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, params => {
      this.published.push(params);
      this.waiting = this.waiting.filter(wait => !wait(params));
    });
    this.connection.onNotification(lsp.ShowMessageNotification.type, params => this.shown.push(params));
    this.connection.listen();
    this.versions = new Map();
  }
  async start() {
    const root = url.pathToFileURL(folder).href;
    const result = await this.connection.sendRequest(lsp.InitializeRequest.type, {
      processId: process.pid, rootUri: root, capabilities: {}, workspaceFolders: [{ uri: root, name: 'w' }],
    });
    await this.connection.sendNotification(lsp.InitializedNotification.type, {});
    return result;
  }
  // The next diagnostics of this file for which `condition` holds.
  next(name, condition = () => true) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no such diagnostics of ${name} within 30 s; last: ` +
        JSON.stringify(this.published.at(-1)))), 30000);
      this.waiting.push(params => {
        if (params.uri !== uriOf(name) || !condition(params)) return false;
        clearTimeout(timer);
        resolve(params);
        return true;
      });
    });
  }
  async open(name, text) {
    const answer = this.next(name);
    this.versions.set(name, 1);
    await this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, {
      textDocument: { uri: uriOf(name), languageId: 'plain', version: 1, text },
    });
    return answer;
  }
  async change(name, changes) {
    const version = this.versions.get(name) + 1;
    this.versions.set(name, version);
    const answer = this.next(name, params => params.version === version);
    await this.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, {
      textDocument: { uri: uriOf(name), version }, contentChanges: changes,
    });
    return answer;
  }
  actions(name, line) {
    const at = { line, character: 0 };
    return this.connection.sendRequest(lsp.CodeActionRequest.type, {
      textDocument: { uri: uriOf(name) }, range: { start: at, end: at }, context: { diagnostics: [] },
    });
  }
  hover(name, line, character) {
    return this.connection.sendRequest(lsp.HoverRequest.type, {
      textDocument: { uri: uriOf(name) }, position: { line, character },
    });
  }
  async stop() {
    await this.connection.sendRequest(lsp.ShutdownRequest.type);
    await this.connection.sendNotification(lsp.ExitNotification.type);
    assert.strictEqual(await this.exited, 0);
  }
}

const codes = params => params.diagnostics.map(d => d.code);
const pod = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers: []\n';
const unused = '# stoker: ignore[SYN002] reason="x"\n';
const old = 'resource "azurerm_linux_virtual_machine" "a" {\n  name = "a"\n  size = "Standard_NC6"\n}\n';

function applied(text, edits) {
  const lines = text.split('\n');
  const offset = p => lines.slice(0, p.line).reduce((sum, l) => sum + l.length + 1, 0) + p.character;
  for (const edit of [...edits].sort((a, b) => offset(b.range.start) - offset(a.range.start)))
    text = text.slice(0, offset(edit.range.start)) + edit.newText + text.slice(offset(edit.range.end));
  return text;
}

const scenarios = {
  async lifecycle() {
    const editor = new Editor();
    const { capabilities, serverInfo } = await editor.start();
    assert.strictEqual(capabilities.textDocumentSync.change, 2);
    assert.ok(capabilities.hoverProvider && capabilities.codeActionProvider);
    assert.strictEqual(serverInfo.name, 'stoker');
    await assert.rejects(editor.connection.sendRequest('stoker/nothing', {}), /not known/);
    assert.deepStrictEqual(codes(await editor.open('a.yaml', unused + pod)), ['SYN004']);
    const closed = editor.next('a.yaml');
    await editor.connection.sendNotification(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri: uriOf('a.yaml') } });
    assert.deepStrictEqual(codes(await closed), []);
    await editor.stop();
    // An editor that dies takes the server with it.
    const second = new Editor();
    await second.start();
    second.process.stdin.end();
    assert.strictEqual(await second.exited, 1);
  },

  async edits() {
    const editor = new Editor();
    await editor.start();
    let text = pod;
    assert.deepStrictEqual(codes(await editor.open('a.yaml', text)), []);
    const edit = async (line, from, to, newText) => {
      const range = { start: { line, character: from }, end: { line, character: to } };
      text = applied(text, [{ range, newText }]);
      return editor.change('a.yaml', [{ range, text: newText }]);
    };
    // UTF-16: the face is two units, one character, four bytes.
    await edit(3, 8, 9, 'b😀c');
    const found = await edit(3, 12, 12, '  # stoker: ignore[SYN002]');
    assert.deepStrictEqual(codes(found), ['SYN004']);
    assert.deepStrictEqual(found.diagnostics[0].range,
      { start: { line: 3, character: 14 }, end: { line: 3, character: 38 } });
    assert.deepStrictEqual(codes(await edit(3, 12, 38, '')), []);
    assert.strictEqual(text.split('\n')[3], '  name: b😀c');
    // Several changes in one message, and the whole text at once.
    const two = await editor.change('a.yaml', [
      { range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }, text: '#\n' },
      { range: { start: { line: 0, character: 1 }, end: { line: 0, character: 1 } }, text: ' stoker: ignore[SYN002]' }]);
    assert.deepStrictEqual(codes(two), ['SYN004']);
    assert.deepStrictEqual(codes(await editor.change('a.yaml', [{ text: pod }])), []);
    // Positions behind the end are the end.
    assert.deepStrictEqual(codes(await editor.change('a.yaml', [
      { range: { start: { line: 999, character: 7 }, end: { line: 1999, character: 0 } }, text: unused }])), ['SYN004']);
    await editor.stop();
  },

  async actions() {
    const editor = new Editor();
    await editor.start();
    const text = pod + unused;
    await editor.open('a.yaml', text);
    const list = await editor.actions('a.yaml', 6);
    assert.strictEqual(list.length, 1);
    assert.ok(list[0].isPreferred && list[0].kind === 'quickfix');
    const edits = list[0].edit.changes[uriOf('a.yaml')];
    assert.strictEqual(applied(text, edits), pod);
    assert.deepStrictEqual(await editor.actions('a.yaml', 0), []);
    if (rules.has('SKU001')) {
      const opened = await editor.open('main.tf', old);
      const retired = opened.diagnostics.find(d => d.code === 'SKU001');
      assert.ok(retired && retired.tags.includes(2) && fs.existsSync(url.fileURLToPath(retired.codeDescription.href)), JSON.stringify(opened));
      assert.strictEqual(retired.range.start.line, 2);
      const offered = await editor.actions('main.tf', 2);
      const ignore = offered.find(a => /SKU001: ignore here/.test(a.title));
      const ignored = applied(old, ignore.edit.changes[uriOf('main.tf')]);
      assert.ok(ignored.includes('  # stoker: ignore[SKU001] reason=""\n  size'), ignored);
      assert.ok(!codes(await editor.change('main.tf', [{ text: ignored }])).includes('SKU001'));
    }
    await editor.stop();
  },

  async hover() {
    const editor = new Editor();
    await editor.start();
    await editor.open('main.tf', old.replace('Standard_NC6', 'Standard_ND96isr_H100_v5'));
    assert.strictEqual(await editor.hover('main.tf', 0, 3), null);
    if (rules.has('SKU001')) {
      const { contents, range } = await editor.hover('main.tf', 2, 15);
      assert.match(contents.value, /96 vCPUs/);
      assert.match(contents.value, /8 x .*H100/);
      assert.match(contents.value, /InfiniBand/);
      assert.match(contents.value, /\$\d/);
      assert.deepStrictEqual(range, { start: { line: 2, character: 10 }, end: { line: 2, character: 34 } });
      await editor.change('main.tf', [{ text: old }]);
      assert.match((await editor.hover('main.tf', 2, 15)).contents.value, /retire/);
    }
    await editor.stop();
  },

  async configuration() {
    fs.writeFileSync(path.join(folder, 'stoker.toml'), '[check]\nignore = ["SYN004"]\n');
    const editor = new Editor();
    await editor.start();
    assert.deepStrictEqual(codes(await editor.open('a.yaml', unused + pod)), []);
    fs.writeFileSync(path.join(folder, 'stoker.toml'), '[check.severity]\nSYN004 = "error"\n');
    const after = editor.next('a.yaml');
    await editor.connection.sendNotification(lsp.DidChangeWatchedFilesNotification.type,
      { changes: [{ uri: uriOf('stoker.toml'), type: 2 }] });
    assert.strictEqual((await after).diagnostics[0].severity, 1);
    fs.writeFileSync(path.join(folder, 'stoker.toml'), '[chek]\n');
    const again = editor.next('a.yaml');
    await editor.connection.sendNotification(lsp.DidChangeWatchedFilesNotification.type,
      { changes: [{ uri: uriOf('stoker.toml'), type: 2 }] });
    await again;
    assert.ok(editor.shown.some(m => /stoker.toml:1:2/.test(m.message)), JSON.stringify(editor.shown));
    await editor.stop();
  },

  // A taint in one file and the pod in another: told once the editor is quiet.
  async joins() {
    if (!rules.has('K8S001')) return;
    fs.writeFileSync(path.join(folder, 'pool.tf'), `resource "azurerm_kubernetes_cluster_node_pool" "gpu" {
  name                  = "gpu"
  kubernetes_cluster_id = "x"
  vm_size               = "Standard_NC4as_T4_v3"
  node_taints           = ["sku=gpu:NoSchedule"]
}
`);
    const editor = new Editor();
    await editor.start();
    const text = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: a\n' +
      '    image: nvidia/cuda:12.4.1-base-ubuntu22.04\n    resources:\n      limits:\n        nvidia.com/gpu: 1\n';
    const joined = editor.next('pod.yaml', params => codes(params).some(code => /K8S00[12]/.test(code)));
    await editor.open('pod.yaml', text);
    await joined;
    await editor.stop();
  },

  // 2,000 lines, 300 edits: from the keystroke to the diagnostics.
  async latency() {
    const editor = new Editor();
    await editor.start();
    let text = '';
    for (let i = 0; text.split('\n').length < 2000; ++i)
      text += (i ? '---\n' : '') + pod.replace('name: a', `name: a${i}`)
        .replace('containers: []', 'containers:\n  - name: t\n    image: nvcr.io/nvidia/pytorch:24.10-py3\n    env:\n    - name: NCCL_DEBUG\n' +
          '      value: WARN\n    resources:\n      limits:\n        nvidia.com/gpu: 8');
    await editor.open('big.yaml', text);
    const times = [];
    for (let i = 0; i < 300; ++i) {
      const line = 4 + 17 * (i % 100);
      const range = { start: { line, character: 0 }, end: { line, character: 0 } };
      const begin = process.hrtime.bigint();
      await editor.change('big.yaml', [{ range, text: i % 2 ? '#' : ' ' }]);
      times.push(Number(process.hrtime.bigint() - begin) / 1e6);
      if (i % 2 === 1) await editor.change('big.yaml', [{ text }]);
    }
    times.sort((a, b) => a - b);
    console.log(`latency p50 ${times[150].toFixed(2)} ms, p99 ${times[297].toFixed(2)} ms`);
    await editor.stop();
  },
};

scenarios[scenario]().then(() => process.exit(0), error => {
  console.error(error);
  process.exit(1);
});

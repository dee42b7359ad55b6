import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';

import { resolveProgram, resolvePrograms } from '../../hack/control-plane/binaries.ts';
import { readProc } from '../../pkg/drivers/process-identity.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled, sampledTest } from '../expect/sampled.ts';
import { Terminal } from '../terminal/terminal.ts';
import { Program, ROOT } from './program.ts';

/** There is one demo in a checkout, so these tests stay in one file: files may run side by side. */
const PLACE = join(ROOT, '.demo');
const UP_MS = 240_000;
const PATIENCE = { timeoutMs: 90_000 };
const UP = 'all machines are Running and their Nodes are Ready';
/** Of the other forms of the demo, each of which starts a control plane, a run takes a third. */
const testInTurn = sampledTest(3);
/** In one line, whatever it was that was ended. */
const ENDED = /\n *[\d.]+ s {2}removing everything… done\n$/;

jest.setTimeout(600_000);

/** Built before any test's time begins. */
await resolveProgram('kwok');

describe('the demo', () => {
  let temporary: string;
  /** What runs is written down here: another test that starts a control plane would clean up after a killed demo too. */
  let state: string;
  beforeAll(() => {
    temporary = mkdtempSync(join(tmpdir(), 'machinist-demo-test-'));
    state = mkdtempSync(join(tmpdir(), 'machinist-demo-state-'));
  });
  afterAll(() => {
    for (const folder of [temporary, state]) rmSync(folder, { recursive: true, force: true });
  });
  const demo = (...args: readonly string[]): Program =>
    new Program('demo', [...args], { env: { TMPDIR: temporary, XDG_STATE_HOME: state } });

  test('shows three kubelets, starts programs that were killed again, and ends with code 130 when Ctrl-C is pressed; nothing is left', async () => {
    await using program = demo();
    await program.says('Ctrl-C here removes everything.', UP_MS);
    await eventually(async () => {
      const tried = await tryOut(program.stdout, 'k get mcd,mcs,mc,nodes');
      expect(tried).toMatch(/^machinedeployment\S*\/workers +\d +3 +3 /m);
      expect(tried.match(/^machine\.\S+ +Running /gm)).toHaveLength(3);
      expect(tried.match(/^node\/workers-\S+ +Ready/gm)).toHaveLength(3);
    }, PATIENCE);
    await using second = demo('--once', '--machines', '1');
    const refused = await second.ended();
    const wasDisturbed = !program.isRunning;
    const manager = (): number => processOf(join(ROOT, 'cmd/machinist/main.ts'), 'run');
    const killed = manager();

    process.kill(killed, 'SIGKILL');
    await program.says('machinist was killed by SIGKILL; restarting it', UP_MS);
    await eventually(() => manager() !== killed, PATIENCE);
    process.kill(processOf('etcd', '--name'), 'SIGKILL');
    await program.says('etcd is serving again', UP_MS);
    // The API server finds it a moment later.
    await eventually(async () => {
      const described = await tryOut(program.stdout, 'm describe machine $(k get mc -o name | head -1 | cut -d/ -f2)');
      expect(described).toMatch(/^Phase: +Running$/m);
    }, PATIENCE);
    program.kill('SIGINT');

    const { code, stdout, stderr } = await program.ended();
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^\S+\.demo is in use: a demo is already running from this checkout\. .*\n$/);
    expect(wasDisturbed).toBe(false);
    expect({ code, stderr }).toEqual({ code: 130, stderr: '' });
    expect(stdout).toMatch(ENDED);
    expect(remains(temporary)).toEqual([]);
  });

  test.each(
    sampled({
      name: 'ends of the demo',
      rows: [
        { what: 'Ctrl-C is pressed', signal: 'SIGINT', when: 'starting etcd', code: 130 },
        { what: 'the terminal is closed', signal: 'SIGHUP', when: 'starting etcd', code: 129 },
        { what: 'Ctrl-C is pressed', signal: 'SIGINT', when: 'using ', code: 130 },
        { what: 'Ctrl-C is pressed', signal: 'SIGINT', when: 'control plane ready', code: 130 },
        { what: 'Ctrl-C is pressed', signal: 'SIGINT', when: 'starting the manager', code: 130 },
        { what: 'Ctrl-C is pressed', signal: 'SIGINT', when: 'waiting for 1 machine', code: 130 },
      ] as const,
      nameOf: ({ what, when }) => `${what} after "${when}"`,
      kindsOf: () => ['end'],
      least: 2,
    }),
  )('ends in one line, with code $code, when $what after "$when"', async ({ signal, when, code }) => {
    await using program = demo('--machines', '1');
    await program.says(when, UP_MS);

    program.kill(signal);

    const ended = await program.ended();
    expect(ended).toMatchObject({ code, stderr: '' });
    expect(ended.stdout).toMatch(ENDED);
    expect(remains(temporary)).toEqual([]);
  });

  test('says in one sentence what cannot be written, and leaves nothing behind', async () => {
    const file = join(temporary, 'file');
    writeFileSync(file, '');
    await using program = new Program('demo', [], { env: { TMPDIR: temporary, XDG_STATE_HOME: file } });

    const { code, stderr } = await program.ended();
    rmSync(file);

    expect(code).toBe(1);
    expect(stderr).toMatch(/^A folder cannot be written \(.*\): choose another one by .*\n$/);
    expect(remains(temporary)).toEqual([]);
  });

  testInTurn(
    'is the live view on a terminal; q shows the list of commands, Enter the view again, and Ctrl-C in it ends the demo',
    async () => {
      const command = [process.execPath, join(ROOT, 'cmd/demo/main.ts'), '--driver', 'sim', '--machines', '1'];
      const env = { TMPDIR: temporary, XDG_STATE_HOME: state };
      await using terminal = await Terminal.start(command, { columns: 80, rows: 40 }, env);

      await terminal.shows(/Running 1/, UP_MS);
      expect(terminal.isAlternate).toBe(true);
      terminal.type('q');
      await terminal.shows(/Enter: the live view again/);
      const list = terminal.lines.join('\n');
      terminal.type('\r');
      await terminal.shows(/^machinist top · /m);
      terminal.type('\u0003');
      const code = await terminal.ended();

      expect(code).toBe(130);
      expect(list).toContain('k get mcd,mcs,mc,nodes');
      expect(list).toMatch(/^Status page, for a browser: http:\/\/127\.0\.0\.1:\d+\/ui\/$/m);
      expect(terminal.lines.join('\n')).toContain('removing everything… done');
      expect(remains(temporary)).toEqual([]);
    },
  );

  testInTurn(
    'asks before each step of the tour, and skips or ends it when told so; ends at once when Ctrl-C is pressed again while it removes everything',
    async () => {
      const command = [process.execPath, join(ROOT, 'cmd/demo/main.ts'), '--machines', '1', '--tour'];
      const env = { TMPDIR: temporary, XDG_STATE_HOME: state };
      await using terminal = await Terminal.start(command, { columns: 100, rows: 40 }, env);

      await terminal.shows(/── 1 of \d+: [^]*Enter: run it/, UP_MS);
      terminal.type('x\r');
      await terminal.shows(/Enter: run it[^\n]*x\n+Enter: run it/);
      terminal.type('s\r');
      await terminal.shows(/── 2 of \d+: [^]*Enter: run it/);
      terminal.type('q\r');
      await terminal.shows(/Ctrl-C here removes everything\./);
      terminal.type('\u0003');
      await terminal.shows(/removing everything…/);
      terminal.type('\u0003');

      expect(await terminal.ended()).toBe(130);
      const told = terminal.lines.join('\n').trimEnd();
      expect(told).toMatch(/removing everything….*stopped at once$/);
      expect(told).not.toContain('3 of ');
      await eventually(() => expect(remains(temporary)).toEqual([]), PATIENCE);
    },
  );

  testInTurn('takes the tour: each step shows what it promises, and leaves a healthy fleet', async () => {
    await using program = demo('--tour', '--yes', '--machines', '2');

    const { code, stdout, stderr } = await program.ended();

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(
      Array.from(stdout.matchAll(/^✓ (.*)$/gm), ([, result = '']) => result.replaceAll(/workers-\S+?(?=[\s,.])/g, 'M')),
    ).toEqual([
      'Scale up and down: 2 machines became 4, and 2 again.',
      'Kill a machine: M was replaced.',
      'A drain that is blocked: The drain of M waited for the PodDisruptionBudget.',
      'Roll out another class, and undo it: 2 machines moved to class M, and back.',
      'A broken class: All 2 old machines stayed while the class was broken.',
      'An outage of the API server: No machine was replaced: M, M.',
      'Kill etcd: No machine was replaced: M, M.',
      'Maintenance: M was out of service, and is the same machine as before.',
    ]);
    expect(stdout).toContain('pod disruption budget default/guarded is misconfigured');
    expect(stdout).toMatch(/^\[!\] .* degraded/m);
    expect(remains(temporary)).toEqual([]);
  });

  testInTurn(
    'shows with an autoscaler how pods become machines, and how only those leave that nobody needs',
    async () => {
      await using program = demo('--once', '--autoscaler', '--machines', '2');

      const { code, stdout, stderr } = await program.ended();

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('a model of the cluster-autoscaler calls the manager over gRPC');
      // At once or one after the other: the pods of a Deployment come one by one.
      const growths = [...stdout.matchAll(/autoscaler +\d+ pod\(s\) pending: workers grows by (\d) for \d of them/g)];
      expect(growths.reduce((sum, [, delta]) => sum + Number(delta), 0)).toBe(2);
      expect(stdout).toContain('2 machine(s) are running, and 6 pods are bound to them');
      const chosen = /autoscaler +(workers-\S+): its deletion was accepted/.exec(stdout)?.[1];
      const [first] = [...stdout.matchAll(/^ +[\d.]+ s +(workers-\S+) +Gone$/gm)].map(([, name]) => name);
      expect(first).toBe(chosen);
      expect(stdout).toContain('one machine remains, for the one pod');
      expect(remains(temporary)).toEqual([]);
    },
  );

  // promise: cluster-api/machinedeployments/demonstration-real-kubelets
  testInTurn(
    'cleans up after one that was killed, takes its programs from an archive on a server, and shows with them how Machines of Cluster API become Nodes, by a provider and real kubelets, and how they go',
    async () => {
      await using killed = demo('--machines', '2');
      await killed.says(UP, UP_MS);
      killed.kill('SIGKILL');
      await killed.ended();
      const orphans = processesIn(PLACE);
      const cache = mkdtempSync(join(tmpdir(), 'machinist-demo-cache-'));
      await using archive = await serveArchive(cache);

      const options = ['--once', '--api', 'cluster-api', '--machines', '1', '--binaries', archive.address];
      await using program = new Program('demo', options, {
        // Without Go, and with nothing in the cache.
        env: {
          TMPDIR: temporary,
          XDG_STATE_HOME: state,
          XDG_CACHE_HOME: cache,
          PATH: '/usr/bin:/bin',
          KUBEBUILDER_ASSETS: '',
        },
      });
      const { code, stdout, stderr } = await program.ended();
      rmSync(cache, { recursive: true });

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(orphans.length).toBeGreaterThanOrEqual(2);
      expect(stdout.match(/stopped kubelet of workers-\S+ \d+, left behind by a demo that was killed/g)).toHaveLength(
        2,
      );
      expect(stdout).toContain(`downloading ${archive.address}…`);
      expect(stdout).toMatch(/using etcd \S+, kube-apiserver .*kube-controller-manager \S+ from \S+\/downloads\/\w+\n/);
      expect(stdout).not.toContain('building');
      expect(stdout).toContain(UP);
      const phases = Array.from(
        stdout.matchAll(/^ +[\d.]+ s +cluster-api +workers-\S+ +(\w+)$/gm),
        ([, phase]) => phase,
      );
      // It looks once a second: a deletion may be over before it is seen.
      expect(phases.slice(phases.indexOf('Running')).filter((phase) => phase !== 'Deleting')).toEqual([
        'Running',
        'Gone',
      ]);
      expect(stdout).toContain('no machines and no Nodes are left');
      expect(remains(temporary)).toEqual([]);
    },
  );

  // promise: ironcore/demonstration/machine-scheduled-running-volume
  testInTurn(
    'shows how Machines of IronCore are placed, run with a volume and a network interface, lose their pool, and go',
    async () => {
      await using program = demo('--once', '--api', 'ironcore', '--machines', '2');

      const { code, stdout, stderr } = await program.ended();

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      for (const name of ['worker-1', 'worker-2']) {
        expect(stdout).toMatch(
          new RegExp(`${name} +Running +The Machine is Running in pool demo. Attached: root, data.\\n`),
        );
        expect(stdout).toMatch(new RegExp(`${name} +PoolNotReady`));
        expect(stdout).toMatch(new RegExp(`${name} +Gone\\n`));
      }
      expect(stdout).toMatch(/pool demo +Offline +RuntimeUnreachable: .+\n/);
      expect(stdout).toContain('its Machines are unchanged');
      expect(stdout).toContain('no Machines are left');
      expect(remains(temporary)).toEqual([]);
    },
  );

  testInTurn(
    'checks itself with Nodes of kwok and pods on them, tells of the end of each machine, and ends with code 0',
    async () => {
      await using program = demo('--once', '--driver', 'kwok', '--machines', '5');

      const { code, stdout, stderr } = await program.ended();

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain(UP);
      expect(stdout).toContain('15 pods run on 5 Node(s), and a single kwok process simulates all their kubelets');
      expect(stdout.match(/^ +[\d.]+ s +workers-\S+ +Gone$/gm)).toHaveLength(5);
      expect(remains(temporary)).toEqual([]);
    },
  );
});

/**
 * Serves an archive, which it makes in a folder, with programs of this host's cache. Each is a script that becomes the program: to pack
 * hundreds of megabytes shows nothing more.
 */
async function serveArchive(folder: string): Promise<AsyncDisposable & { readonly address: string }> {
  const names = ['etcd', 'kube-apiserver', 'kubectl', 'kube-controller-manager', 'kubemark'] as const;
  const programs = await resolvePrograms(names);
  const scripts = mkdtempSync(join(folder, 'scripts-'));
  for (const name of names)
    writeFileSync(join(scripts, name), `#!/bin/sh\nexec '${programs[name].path}' "$@"\n`, { mode: 0o755 });
  const archive = join(folder, 'machinist-binaries.tar.gz');
  await promisify(execFile)('tar', ['-czf', archive, '-C', scripts, ...names]);
  const hash = createHash('sha256').update(readFileSync(archive)).digest('hex');
  const server = createServer(({ url }, response) => {
    if (url === '/machinist-binaries.tar.gz') return void createReadStream(archive).pipe(response);
    if (url === '/machinist-binaries.tar.gz.sha256') return void response.end(`${hash}  machinist-binaries.tar.gz\n`);
    response.writeHead(404).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/machinist-binaries.tar.gz`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}

/** Types a line of the printed list into a shell, as the user does it, and returns its output. */
async function tryOut(printed: string, line: string): Promise<string> {
  expect(printed).toContain(`  ${line}`);
  expect(printed).toContain('  source .demo/env');
  const { stdout } = await promisify(execFile)('sh', ['-c', `. .demo/env\n${line}`], { cwd: ROOT });
  return stdout;
}

/** The process of this checkout's demo that was started with these arguments, one after the other; fails unless there is one. */
function processOf(...args: readonly string[]): number {
  const found = readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      readProc(`/proc/${pid}/cmdline`)?.includes(args.join('\0')) === true &&
      readProc(`/proc/${pid}/cmdline`)?.includes(`${PLACE}/`),
  );
  if (found.length !== 1) throw new Error(`${found.length} processes of ${args.join(' ')}`);
  return Number(found[0]);
}

/** What a demo has left behind: its folder, processes that were started from it, files in the folder for temporary ones. */
function remains(temporary: string): readonly string[] {
  return [...(existsSync(PLACE) ? [PLACE] : []), ...processesIn(PLACE), ...readdirSync(temporary)];
}

/** Command lines that name a file in the folder. */
function processesIn(folder: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readProc(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ') ?? '')
    .filter((commandLine) => commandLine.includes(`${folder}/`));
}

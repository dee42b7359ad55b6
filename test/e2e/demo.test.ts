import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { readProc } from '../../pkg/drivers/process-identity.ts';
import { eventually } from '../expect/eventually.ts';
import { Program, ROOT } from './program.ts';

/** There is one demo in a checkout, so these tests stay in one file: files may run side by side. */
const PLACE = join(ROOT, '.demo');
const UP_MS = 240_000;
const PATIENCE = { timeoutMs: 90_000 };
const UP = 'all machines are Running and their Nodes are Ready';

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

  test('shows three kubelets and ends with code 0 when Ctrl-C is pressed; nothing is left', async () => {
    await using program = demo();
    await program.says('Ctrl-C here removes everything.', UP_MS);
    await eventually(async () => {
      const tried = await tryOut(program.stdout, 'k get mcd,mcs,mc,nodes');
      expect(tried).toMatch(/^machinedeployment\S*\/workers +\d +3 +3 /m);
      expect(tried.match(/^machine\.\S+ +Running /gm)).toHaveLength(3);
      expect(tried.match(/^node\/workers-\S+ +Ready/gm)).toHaveLength(3);
    }, PATIENCE);

    program.kill('SIGINT');

    expect(await program.ended()).toMatchObject({ code: 0, stderr: '' });
    expect(remains(temporary)).toEqual([]);
  });

  test.each([
    { what: 'Ctrl-C is pressed', signal: 'SIGINT' },
    { what: 'the terminal is closed', signal: 'SIGHUP' },
  ] as const)('ends with code 0 when $what while it starts', async ({ signal }) => {
    await using program = demo();
    await program.says('starting etcd', UP_MS);

    program.kill(signal);

    expect(await program.ended()).toMatchObject({ code: 0, stderr: '' });
    expect(remains(temporary)).toEqual([]);
  });

  test('starts a program that was killed again, and says so', async () => {
    await using program = demo('--driver', 'sim', '--machines', '1');
    await program.says('Ctrl-C here removes everything.', UP_MS);
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

    expect(await program.ended()).toMatchObject({ code: 0, stderr: '' });
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

  test('runs once in a checkout, and cleans up after one that was killed', async () => {
    await using killed = demo('--machines', '2');
    await killed.says(UP, UP_MS);

    await using second = demo('--once', '--machines', '1');
    const refused = await second.ended();
    const wasDisturbed = !killed.isRunning;
    killed.kill('SIGKILL');
    await killed.ended();
    const orphans = processesIn(PLACE);
    await using third = demo('--once', '--machines', '1');
    const { code, stdout, stderr } = await third.ended();

    expect(refused.code).toBe(1);
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toMatch(/^\S+\.demo is in use: a demo is already running from this checkout\. .*\n$/);
    expect(wasDisturbed).toBe(false);
    expect(orphans.length).toBeGreaterThanOrEqual(2);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.match(/stopped kubelet of workers-\S+ \d+, left behind by a demo that was killed/g)).toHaveLength(2);
    expect(stdout).toContain(UP);
    expect(stdout).toContain('no machines and no Nodes are left');
    expect(remains(temporary)).toEqual([]);
  });

  test('shows with an autoscaler how pods become machines, and how only those leave that nobody needs', async () => {
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
  });

  // promise: cluster-api/machinedeployments/demonstration-real-kubelets
  test('shows how Machines of Cluster API become Nodes, by a provider and real kubelets, and how they go', async () => {
    await using program = demo('--once', '--api', 'cluster-api', '--machines', '1');

    const { code, stdout, stderr } = await program.ended();

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(UP);
    const phases = Array.from(stdout.matchAll(/^ +[\d.]+ s +cluster-api +workers-\S+ +(\w+)$/gm), ([, phase]) => phase);
    // It looks once a second: a deletion may be over before it is seen.
    expect(phases.slice(phases.indexOf('Running')).filter((phase) => phase !== 'Deleting')).toEqual([
      'Running',
      'Gone',
    ]);
    expect(stdout).toContain('no machines and no Nodes are left');
    expect(remains(temporary)).toEqual([]);
  });

  // promise: ironcore/demonstration/machine-scheduled-running-volume
  test('shows how Machines of IronCore are placed, run with a volume and a network interface, lose their pool, and go', async () => {
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
  });

  test('checks itself with Nodes of kwok and pods on them, tells of the end of each machine, and ends with code 0', async () => {
    await using program = demo('--once', '--driver', 'kwok', '--machines', '20');

    const { code, stdout, stderr } = await program.ended();

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(UP);
    expect(stdout).toContain('60 pods run on 20 Node(s), and a single kwok process simulates all their kubelets');
    expect(stdout.match(/^ +[\d.]+ s +workers-\S+ +Gone$/gm)).toHaveLength(20);
    expect(remains(temporary)).toEqual([]);
  });
});

/** Types a line of the printed list into a shell, as the user does it, and returns its output. */
async function tryOut(printed: string, line: string): Promise<string> {
  expect(printed).toContain(`  ${line}`);
  const aliases = [...printed.matchAll(/^ +alias (\w)='(.+)'$/gm)].map(
    ([, name, words]) => `${name}() { ${words} "$@"; }`,
  );
  const { stdout } = await promisify(execFile)('sh', ['-c', [...aliases, line].join('\n')], { cwd: ROOT });
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

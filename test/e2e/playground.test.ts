import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { parse } from 'yaml';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { eventually } from '../expect/eventually.ts';
import { Program } from './program.ts';

const UP_MS = 120_000;
const PATIENCE = { timeoutMs: 120_000 };
/** Only Node is there. */
const PATH = path.dirname(process.execPath);

jest.setTimeout(480_000);

const { path: kubectlProgram } = await resolveProgram('kubectl');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'machinist-playground-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const playground = (directory: string, ...args: readonly string[]): Program =>
  new Program('../hack/playground', ['--directory', directory, ...args], { env: { PATH } });

interface Said {
  readonly isDone: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl, as a user does, with a manifest on its standard input. */
function kubectl(directory: string, line: string, manifest?: object): Promise<Said> {
  const env = { ...process.env, KUBECONFIG: path.join(directory, 'kubeconfig'), HOME: directory };
  const { promise, resolve } = Promise.withResolvers<Said>();
  const child = execFile(kubectlProgram, line.split(' '), { env }, (err, stdout, stderr) => {
    resolve({ isDone: err === null, stdout, stderr });
  });
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(manifest === undefined ? '' : JSON.stringify(manifest));
  return promise;
}

async function machineNames(directory: string, phase: string): Promise<readonly string[]> {
  const { stdout } = await kubectl(directory, 'get machines --no-headers');
  return stdout.split('\n').flatMap((row) => {
    const [name = '', status] = row.split(/ +/);
    return status === phase ? [name] : [];
  });
}

const deployment = (name: string, replicas: number): object => ({
  apiVersion: 'machine.sapcloud.io/v1alpha1',
  kind: 'MachineDeployment',
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { pool: name } },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: {
      metadata: { labels: { pool: name } },
      spec: { class: { kind: 'MachineClass', name: 'pool' } },
    },
  },
});

describe('the playground', () => {
  let directory: string;
  let program: Program;
  const k = (line: string, manifest?: object): Promise<Said> => kubectl(directory, line, manifest);
  const untilRunning = async (count: number): Promise<readonly string[]> => {
    let names: readonly string[] = [];
    await eventually(
      async () => {
        names = await machineNames(directory, 'Running');
        return names.length === count;
      },
      { ...PATIENCE, describe: () => `${count} machines to run; there are ${names.join(', ')}\n${program.stdout}` },
    );
    return names;
  };
  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'machinist-playground-shared-'));
    program = playground(directory, '--machines', '2', '--pace', '4');
    await program.says('Ctrl-C ends the simulation', UP_MS);
  });
  afterAll(async () => {
    await program[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  test('says first that it is a simulation, and how the real thing is run', () => {
    expect(program.stdout).toMatch(
      /^This is a simulation:.*\nWith a real kube-apiserver, etcd and kubelets: npm run demo\n/,
    );
  });

  test('shows machines and their Nodes as a real API server does', async () => {
    await k('scale mcd pool --replicas=2');
    const [name = ''] = await untilRunning(2);

    const machines = await k('get mcd,mcs,mc,nodes,pods');
    const described = await k(`describe machine ${name}`);
    const explained = await k('explain machine.spec.providerID');

    expect(machines.stdout).toMatch(
      /^NAME +READY +DESIRED +UP-TO-DATE +AVAILABLE +AGE\nmachinedeployment\S*\/pool +2 +2 +2 +2 +\d/,
    );
    expect(machines.stdout).toMatch(new RegExp(`^machine\\.\\S+/${name} +Running +\\S+ +${name}$`, 'm'));
    expect(machines.stdout).toMatch(new RegExp(`^node/${name} +Ready +<none> +\\S+ +v1`, 'm'));
    expect(described.stdout).toMatch(/^Events:\n.*\n.*\n +Normal +VMCreated/m);
    expect(explained.stdout).toContain('FIELD: providerID <string>');
  });

  test('shows with -o wide what each object is of, and what the last operation of a machine says', async () => {
    await k('scale mcd pool --replicas=2');
    const [name = ''] = await untilRunning(2);

    const wide = async (kind: string): Promise<string> => (await k(`get ${kind} -o wide`)).stdout;

    expect(await wide('mcd')).toMatch(/ CLASS +STRATEGY +PAUSED +PROGRESSING *\n.* pool +RollingUpdate +NewMachineSet/);
    expect(await wide('mcs')).toMatch(/ CLASS +REVISION *\n.* pool +1 *$/m);
    expect(await wide('mcc')).toMatch(/^NAME +AGE +PROVIDER +TYPE +ZONE *\npool +\S+ +sim *$/m);
    expect(await wide('mc')).toMatch(
      new RegExp(
        `PROVIDERID +CLASS +ZONE +SINCE +PRESERVED +REASON +MESSAGE *\\n[^]*^${name} .*sim:///\\S+ +pool +\\d`,
        'm',
      ),
    );
    expect(await wide('mc')).toContain('successfully joined the cluster');
  });

  test('does what kubectl scales, deletes, creates and applies', async () => {
    expect(await k('scale mcd pool --replicas=3')).toMatchObject({ isDone: true });
    const [first = ''] = await untilRunning(3);
    expect(await k(`delete machine ${first}`)).toMatchObject({ isDone: true });
    expect(await untilRunning(3)).not.toContain(first);
    expect(await k('create -f -', deployment('more', 1))).toMatchObject({ isDone: true });
    await untilRunning(4);
    const again = await k('create -f -', deployment('more', 1));
    expect(await k('apply -f -', deployment('more', 2))).toMatchObject({ isDone: true });
    const names = await untilRunning(5);
    expect(await k('delete mcd more --cascade=foreground')).toMatchObject({ isDone: true });

    expect(again.stderr).toContain('machinedeployments.machine.sapcloud.io "more" already exists');
    expect(names.filter((name) => name.startsWith('more-'))).toHaveLength(2);
    expect(await untilRunning(3)).toEqual(names.filter((name) => !name.startsWith('more-')));
  });

  test('applies on the server, and stores nothing of a dry run', async () => {
    const dry = await k('create --dry-run=server -f -', deployment('dry', 0));
    const sides = [
      await k('apply --server-side -f -', deployment('side', 0)),
      await k('apply --server-side -f -', { ...deployment('side', 0), metadata: { name: 'side', labels: { a: 'b' } } }),
    ];
    const labelled = await k('get mcd -l a=b -o name');
    const shown = await k('get mcd dry');
    expect(await k('delete mcd side')).toMatchObject({ isDone: true });

    expect(dry.stdout).toContain('machinedeployment.machine.sapcloud.io/dry created (server dry run)');
    expect(shown.stderr).toContain('machinedeployments.machine.sapcloud.io "dry" not found');
    for (const { stdout } of sides) {
      expect(stdout).toContain('machinedeployment.machine.sapcloud.io/side serverside-applied');
    }
    expect(labelled.stdout).toBe('machinedeployment.machine.sapcloud.io/side\n');
  });

  test('shows a watch as it goes', async () => {
    await k('scale mcd pool --replicas=3');
    await untilRunning(3);
    const env = { ...process.env, KUBECONFIG: path.join(directory, 'kubeconfig'), HOME: directory };
    const watching = spawn(kubectlProgram, ['get', 'machines', '--watch'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let shown = '';
    watching.stdout.setEncoding('utf8').on('data', (chunk: string) => (shown += chunk));
    try {
      // Whatever changes about one of them has it shown again.
      await eventually(() => (shown.match(/ Running /g)?.length ?? 0) >= 3, PATIENCE);

      await k('scale mcd pool --replicas=4');

      const isShown = /^(pool-\S+) +Pending.*\n(.*\n)*\1 +Running/m;
      await eventually(() => isShown.test(shown), {
        ...PATIENCE,
        describe: () => `a new machine to be shown:\n${shown}`,
      });
    } finally {
      watching.kill();
    }
  });

  test.each([
    {
      what: 'a field that no definition knows',
      line: 'create -f -',
      manifest: { ...deployment('typo', 1), extra: 1 },
      error: 'strict decoding error: unknown field "extra"',
    },
    {
      what: 'a MachineDeployment without a strategy',
      line: 'apply -f -',
      manifest: { ...deployment('bad', 1), spec: { selector: { matchLabels: { a: 'b' } } } },
      error: 'strategy.type must be RollingUpdate, Recreate or InPlaceUpdate',
    },
    {
      what: 'a server-side apply of what others have set',
      line: 'apply --server-side -f -',
      manifest: deployment('pool', 9),
      error: 'the simulated API server does not know conflicts of server-side apply',
    },
    {
      what: 'what kubectl sends as protobuf',
      line: 'create namespace other',
      manifest: undefined,
      error: 'the simulation takes JSON. Use kubectl apply or create with -f FILE',
    },
    {
      what: 'a kind that does not exist',
      line: 'get services',
      manifest: undefined,
      error: 'the server doesn\'t have a resource type "services"',
    },
  ])('refuses $what with a clear error', async ({ line, manifest, error }) => {
    const { isDone, stderr } = await k(line, manifest);

    expect(isDone).toBe(false);
    expect(stderr).toContain(error);
  });

  test('answers nobody without its token', async () => {
    await k('get nodes');
    const kubeconfig = parse(readFileSync(path.join(directory, 'kubeconfig'), 'utf8')) as {
      users: { user: { token: string } }[];
    };
    kubeconfig.users[0]!.user.token = 'another';
    writeFileSync(path.join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));

    const { isDone, stderr } = await kubectl(folder, 'get machines');

    expect(isDone).toBe(false);
    expect(stderr).toMatch(/must be logged in|Unauthorized/);
  });
});

describe('a playground of its own', () => {
  test('ends with code 0 when Ctrl-C is pressed, and leaves nothing', async () => {
    const directory = path.join(folder, 'own');
    await using program = playground(directory, '--machines', '1');
    await program.says('Running', UP_MS);

    program.kill('SIGINT');

    expect(await program.ended()).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('says which port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };

    await using program = playground(path.join(folder, 'own'), '--port', String(port));

    expect(await program.ended()).toMatchObject({
      code: 2,
      stderr: `--port: ${port} is in use; choose another one, or 0 for a free one\n`,
    });
    expect(readdirSync(folder)).toEqual([]);
    await new Promise((resolve) => other.close(resolve));
  });

  test.each([
    { args: ['--pace', '0'], error: '--pace: must be at least 1' },
    { args: ['--port', '70000'], error: '--port: must be at most 65535' },
    { args: ['--machines', 'many'], error: "argument 'many' is invalid" },
  ])('refuses $args', async ({ args, error }) => {
    await using program = playground(path.join(folder, 'own'), ...args);

    const { code, stderr } = await program.ended();

    expect(code).toBe(2);
    expect(stderr).toContain(error);
  });
});

import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { machineDeployments, machines } from '../../pkg/kube/client/resource.ts';
import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { Program, ROOT } from '../e2e/program.ts';
import { apiServer } from '../env/api-server.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { Terminal, type TerminalSize } from '../terminal/terminal.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const ENTER = '\r';
const ESCAPE = '\u001B';
const DOWN = '\u001B[B';
/** What shows the cursor again, and leaves the screen of a program. */
const RESTORED = [`${ESCAPE}[?25h`, `${ESCAPE}[?1049l`];

function top(
  world: MachineSetWorld,
  size: TerminalSize,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Terminal> {
  const program = [process.execPath, join(ROOT, 'cmd/machinist/main.ts'), 'top', '-n', world.namespace.name];
  return Terminal.start([...program, `--kubeconfig=${world.connection.kubeconfig}`, ...args], size, env);
}

async function worldOf(replicas: number): Promise<MachineSetWorld> {
  const world = await MachineSetWorld.start({ startMs: 10, stopMs: 10 });
  await world.createDeployment(replicas);
  await eventually(() => expect(world.running()).toHaveLength(replicas), PATIENCE);
  return world;
}

describe('machinist top in a terminal', () => {
  test('shows what happens, goes into the story of a machine, and gives the terminal back', async () => {
    await using world = await worldOf(2);
    await using terminal = await top(world, { columns: 100, rows: 30 });
    await terminal.shows(/^Machines 2: Running 2$/m);
    expect(terminal.isAlternate).toBe(true);
    expect(terminal.lines[0]).toMatch(/^machinist top · \S+ · namespace \S+ +\d\d:\d\d:\d\d UTC$/);
    expect(terminal.lines.join('\n')).toMatch(/^ {2}d +2\/2 ready {2}█{20}/m);

    const drawn = terminal.output.length;
    await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
    await terminal.shows(/^Machines 3: Running 3$/m);
    // Without flicker: what changes is drawn over, and the screen is not emptied.
    // eslint-disable-next-line no-control-regex -- what empties it
    expect(terminal.output.slice(drawn)).not.toMatch(/\u001B\[(?:2J|3J|H\u001B\[J)/);
    terminal.type(`${DOWN}${ENTER}`);
    await terminal.shows(/^Machine \S+\/d-\S+ [^]*^Phase: +Running$/m);
    terminal.type(ESCAPE);
    await terminal.shows(/^Machines 1-3 of 3 · sorted by attention/m);
    const [name = ''] = (await world.list(machines)).map(({ metadata }) => metadata.name);
    terminal.type(`/${name}${ENTER}`);
    await terminal.shows(/^Machines 1-1 of 1 · sorted by attention · filter: d-/m);
    terminal.resize({ columns: 60, rows: 20 });
    await terminal.shows(/^Enter story {2}\/ filter/m);
    expect(terminal.lines).toHaveLength(20);

    terminal.type('q');

    expect(await terminal.ended()).toBe(0);
    expect(terminal.isAlternate).toBe(false);
    for (const sequence of RESTORED) expect(terminal.output).toContain(sequence);
  }, 180_000);

  test.each([
    { how: 'Ctrl-C', stop: (terminal: Terminal) => terminal.type('\u0003'), code: 130 },
    { how: 'SIGTERM', stop: (terminal: Terminal) => terminal.signal(15), code: 0 },
    { how: 'SIGINT', stop: (terminal: Terminal) => terminal.signal(2), code: 130 },
  ])(
    'ends by $how with code $code, and nothing left on the screen',
    async ({ stop, code }) => {
      await using world = await worldOf(1);
      await using terminal = await top(world, { columns: 80, rows: 24 }, [], { NO_COLOR: '1' });
      await terminal.shows(/^Machines 1: Running 1$/m);

      stop(terminal);

      expect(await terminal.ended()).toBe(code);
      expect(terminal.isAlternate).toBe(false);
      for (const sequence of RESTORED) expect(terminal.output).toContain(sequence);
      expect(terminal.lines.join('')).toBe('');
      // eslint-disable-next-line no-control-regex -- what paints text
      expect(terminal.output).not.toMatch(/\u001B\[3[0-7]m/);
    },
    120_000,
  );

  test('says since when the API server does not answer, and continues when it does', async () => {
    await using world = await worldOf(1);
    const { url, ca, admin, directory } = world.connection;
    await using proxy = await FaultProxy.start(url);
    const kubeconfig = join(directory, `top-${world.namespace.name}.yaml`);
    writeKubeconfig(kubeconfig, { url: proxy.url, ca, identity: admin });
    await using terminal = await top(world, { columns: 120, rows: 30 }, [`--kubeconfig=${kubeconfig}`]);
    await terminal.shows(/^Machines 1: Running 1$/m);

    proxy.set('refuse');
    await terminal.shows(/^! API server: no answer since \d\d:\d\d:\d\d \(\d+s\); what is shown is from then\./m);
    await world.patch(machineDeployments, 'd', { spec: { replicas: 2 } });
    proxy.set('up');

    await terminal.shows(/^Machines 2: Running 2$/m);
    expect(terminal.lines.join('\n')).not.toContain('no answer');
    terminal.type('q');
    expect(await terminal.ended()).toBe(0);
  }, 180_000);
});

describe('machinist top without a terminal', () => {
  test.each([
    { format: 'text', says: (name: string) => `  pool/${name} 2/2 ready, 2 updated\n` },
    { format: 'json', says: (name: string) => `"object":"pool/${name}","namespace":` },
  ])(
    'prints a line for each change as $format',
    async ({ format, says }) => {
      await using world = await worldOf(1);
      const args = ['top', '-n', world.namespace.name, `--kubeconfig=${world.connection.kubeconfig}`, '-o', format];
      await using live = new Program('machinist', args);
      await live.says('1 in total: 1 Running; 0 need attention', 60_000);

      await world.patch(machineDeployments, 'd', { spec: { replicas: 2 } });

      // Each kind has its own watch: which of the two is seen first is open.
      await live.says('2/2 ready, 2 updated', 60_000);
      await live.says('created: ', 60_000);
      expect(live.stdout).toContain(says('d'));
      expect(live.stdout).toMatch(/machine\/d-\S+.*created: /);
      expect(live.stdout).not.toContain('events cannot be read');
      live.kill('SIGTERM');
      expect(await live.ended()).toMatchObject({ code: 0, stderr: '' });
    },
    120_000,
  );

  test('says what may not be read, and shows the rest', async () => {
    await using server = await apiServer();
    const { url, ca, directory } = server.connection;
    const kubeconfig = join(directory, 'top-nobody.yaml');
    writeKubeconfig(kubeconfig, { url, ca, identity: await server.connection.credentialFor({ user: 'nobody' }) });
    await using live = new Program('machinist', ['top', '-n', 'default', `--kubeconfig=${kubeconfig}`]);

    for (const what of ['machines', 'machinesets', 'events', 'leases', 'pods of the manager']) {
      await live.says(`! cluster ${what} cannot be read: `, 60_000);
    }
    await live.says('machines 0 in total; 0 need attention', 60_000);
    live.kill('SIGINT');
    expect(await live.ended()).toMatchObject({ code: 130, stderr: '' });
  }, 120_000);
});

import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { Program } from '../e2e/program.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

function describeMachine(...args: string[]): ReturnType<typeof Program.run> {
  return Program.run('machinist', ['describe', 'machine', ...args]);
}

describe('machinist describe machine', () => {
  test('explains a machine, as text and as JSON', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.inPhase(name, 'Running');
    const access = ['-n', world.namespace, '--kubeconfig', world.connection.kubeconfig];

    const text = await eventually(
      async () => {
        const printed = await describeMachine(name, ...access);
        expect(printed.stdout).toContain(' NodeJoined ');
        expect(printed.stdout).toContain(' VMCreated ');
        return printed;
      },
      { timeoutMs: 60_000, describe: 'its Events' },
    );
    const json = await describeMachine(name, ...access, '-o', 'json');
    const names = await describeMachine(...access, '-o=name');
    const none = await describeMachine(...access, '-l', 'no=such');

    expect([text.code, text.stderr, json.code, json.stderr]).toEqual([0, '', 0, '']);
    expect(names).toEqual({ code: 0, stdout: `machine.machine.sapcloud.io/${name}\n`, stderr: '' });
    expect(none).toMatchObject({ code: 1, stderr: `error: no resources found in ${world.namespace} namespace\n` });
    expect(text.stdout).toMatch(
      new RegExp(
        `^Name: +${name}\nNamespace: +${world.namespace}\nClass: +class-1\nVM: +sim:///.*\nNode: +${name}\nPhase: +Running\nReason: +Running\n`,
      ),
    );
    expect(text.stdout).toMatch(/\nConditions:\n {2}Type +Status +Age +Reason +Message\n[^]*\n {2}Healthy +True/);
    expect(text.stdout).toMatch(/\nEvents:\n[^]*Normal +VMCreated +\S+ +machine-controller +VM sim:/);
    expect(JSON.parse(json.stdout)).toMatchObject({
      name,
      namespace: world.namespace,
      phase: 'Running',
      reason: 'Running',
      node: name,
      lastOperation: { type: 'Create', state: 'Successful' },
      conditions: [{ type: 'VMCreated' }, { type: 'NodeJoined' }, { type: 'Healthy', status: 'True' }],
    });
    // Each look starts a process, which takes a busy machine seconds.
  }, 180_000);

  test('tells of a machine that is gone what its Events tell', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.inPhase(name, 'Running');
    await world.delete(name);
    await world.gone(name);
    const access = ['-n', world.namespace, '--kubeconfig', world.connection.kubeconfig];

    const text = await eventually(
      async () => {
        const printed = await describeMachine(name, ...access);
        expect(printed.stdout).toContain(' VMDeleted ');
        return printed;
      },
      { timeoutMs: 60_000, describe: 'its Events' },
    );
    const json = await describeMachine(name, ...access, '-o', 'json');

    expect([text.code, text.stderr, json.code]).toEqual([0, '', 0]);
    expect(text.stdout).toMatch(
      /^Name: .*\nNamespace: .*\nMessage: +The Machine no longer exists. These are the Events about it: VMCreated, .*VMDeleted/,
    );
    expect(text.stdout).toMatch(/\nLast Event: +\S+Z \(\d+s ago\)\nEvents:\n/);
    expect(JSON.parse(json.stdout)).toMatchObject({ name, exists: false, lastEvent: expect.any(String) });
  }, 180_000);

  test('says in the words of kubectl what went wrong, with code 1', async () => {
    const { directory, ca, admin, kubeconfig } = connect();
    const reserved = createServer();
    await new Promise<void>((resolve) => reserved.listen(0, '127.0.0.1', resolve));
    const { port } = reserved.address() as AddressInfo; // a TCP server
    await new Promise((resolve) => reserved.close(resolve));
    const nowhere = join(directory, `nowhere-${port}.yaml`);
    writeKubeconfig(nowhere, { url: `https://127.0.0.1:${port}`, ca, identity: admin });

    const missing = await describeMachine('no-such-machine', '--kubeconfig', kubeconfig);
    const several = await Program.run('machinist', [
      'describe',
      'mc/a',
      'machine.compute.ironcore.dev/b',
      '--kubeconfig',
      kubeconfig,
    ]);
    const down = await describeMachine('m-1', '--kubeconfig', nowhere);
    const unreadable = await describeMachine('m-1', '--kubeconfig', '/no/such/file');

    expect(missing).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Error from server (NotFound): machines.machine.sapcloud.io "no-such-machine" not found\n',
    });
    expect(several).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^Error from server \(NotFound\): machines.machine[^\n]* "a" not found\nError from server \(/,
      ),
    });
    expect(down).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Unable to connect to the server: /),
    });
    expect(unreadable).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: reading kubeconfig /),
    });
  });

  test.each([
    { args: ['a', '-o', 'xml'], says: 'Allowed choices are text, json, yaml, name.' },
    {
      args: ['a', '-A', '-n', 'x'],
      says: "option '-A, --all-namespaces' cannot be used with option '-n, --namespace <name>'",
    },
    { args: ['a', '--namespce', 'x'], says: 'Did you mean --namespace?' },
  ])('refuses $args with code 2, and says why', async ({ args, says }) => {
    const { code, stdout, stderr } = await describeMachine(...args);

    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(says);
  });
});

import { once } from 'node:events';
import { createServer as createHTTPServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { Program } from '../e2e/program.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { machineClasses, machineDeployments, machineSets } from '../../pkg/kube/client/resource.ts';
import { MachineSetWorld } from './machine-set-world.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

function describeMachine(...args: string[]): ReturnType<typeof Program.run> {
  return Program.run('machinist', ['describe', 'machine', ...args]);
}

/** A process of the manager that does nothing. */
async function answering(note: (path: string) => void): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createHTTPServer((request, response) => {
    note(request.url ?? '');
    response.end(JSON.stringify({ activities: [], retries: [], exhausted: [], drains: [] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens at a port
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('machinist describe', () => {
  test('shows a MachineDeployment and its set with all that belongs to them, and what holds them up', async () => {
    await using world = await MachineSetWorld.start({ startMs: 200, goes: () => false });
    await world.createDeployment(2);
    await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
    const [set] = await world.list(machineSets);
    await world.patch(machineDeployments, 'd', {
      spec: { paused: true, template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
    });
    const access = ['-n', world.namespace.name, '--kubeconfig', world.connection.kubeconfig];
    const run = (...args: string[]): ReturnType<typeof Program.run> =>
      Program.run('machinist', ['describe', ...args, ...access]);

    const deployment = await eventually(async () => {
      const printed = await run('mcd/d');
      expect(printed.stdout).toContain(' DeploymentPaused ');
      return printed;
    }, PATIENCE);
    const ofSet = await run(`mcs/${set?.metadata.name}`);
    const json = await run('mcd', 'd', '-o', 'json');

    expect([deployment.code, deployment.stderr, ofSet.code, json.code]).toEqual([0, '', 0, 0]);
    expect(deployment.stdout).toMatch(
      new RegExp(
        `^Name: +d\\nNamespace: +${world.namespace.name}\\nClass: +c2\\nRevision: +1\\nStrategy: +RollingUpdate\\nPaused: +true\\n` +
          'Replicas: +2 desired \\| 0 updated \\| 2 total \\| 2 ready \\| 2 available\\n',
      ),
    );
    expect(deployment.stdout).toMatch(/\n! Paused: nothing is rolled out|\n *│? ! Paused: nothing is rolled out/);
    expect(deployment.stdout).toMatch(/\n└─MachineSet\/\S+ \(revision 1\) +2\/2 ready[^]*─Machine\/\S+ +Running/);
    expect(deployment.stdout).toMatch(/\nConditions:\n[^]*\nEvents:/);
    expect(ofSet.stdout).toMatch(
      /^Name: .*\nNamespace: .*\nOwner: +MachineDeployment\/d\nClass: +c\nRevision: +1\nReplicas: +2 desired \| 2 total \| 2 ready/,
    );
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: 'd',
      isPaused: true,
      replicas: { desired: 2, updated: 0 },
      tree: { kind: 'MachineDeployment', children: [{ kind: 'MachineSet', children: [{}, {}] }] },
    });
  }, 180_000);

  test('shows a MachineClass with the Machines that keep it, and of a Node its Machine', async () => {
    await using world = await MachineWorld.open({ controllers: 'machine,machine-class' });
    const name = await world.create();
    await world.inPhase(name, 'Running');
    const access = ['-n', world.namespace, '--kubeconfig', world.connection.kubeconfig];
    const run = (...args: string[]): ReturnType<typeof Program.run> =>
      Program.run('machinist', ['describe', ...args, ...access]);
    const kept = await run('mcc/class-1');
    const { uid } = await world.user.reader
      .get(machineClasses, { namespace: world.namespace, name: 'class-1' })
      .then(({ metadata }) => metadata);
    await world.user.writer.delete('destroy', machineClasses, { namespace: world.namespace, name: 'class-1' }, { uid });

    const deleted = await run('mcc', 'class-1');
    const ofNode = await run(`node/${name}`);
    const ofNodes = await run('nodes', '-o', 'name');
    const noNode = await run('node/none');

    expect(kept.stdout).toMatch(
      new RegExp(
        `^Name: +class-1\\nNamespace: .*\\nProvider: +sim\\n(?:.*\\n)*Secrets: +${world.namespace}/secret-1\\nMachines: +1\\nEvents:`,
      ),
    );
    expect(deleted.stdout).toMatch(
      /\nDeletion: +\S+Z\nWaiting For: +1 Machine to be deleted, whose VMs are found with this class\n/,
    );
    expect(ofNode).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^Name: +${name}\\n`)) });
    expect(ofNodes).toMatchObject({ code: 0, stdout: `machine.machine.sapcloud.io/${name}\n` });
    expect(noNode).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: no machine in ${world.namespace} namespace has Node "none"\n`,
    });
  }, 180_000);
});

describe('machinist describe machine', () => {
  test('explains a machine, as text and as JSON, and asks the manager only for what is printed', async () => {
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
      { timeoutMs: 120_000, describe: 'its Events' },
    );
    const json = await describeMachine(name, ...access, '-o', 'json');
    const asked: string[] = [];
    await using manager = await answering((path) => asked.push(path));
    const names = await describeMachine(...access, '-o=name', `--url=${manager.url}`);
    expect(asked).toEqual([]);
    await describeMachine(name, ...access, `--url=${manager.url}`);
    expect(asked).toEqual(['/work']);
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
      { timeoutMs: 120_000, describe: 'its Events' },
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

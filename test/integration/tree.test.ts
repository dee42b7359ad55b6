import { describe, expect, test } from '@jest/globals';

import { machineDeployments } from '../../pkg/kube/client/resource.ts';
import type { TreeNode } from '../../pkg/fleet/tree.ts';
import { type Ending, Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const SAYS_MS = 60_000;

function argsOf(world: MachineSetWorld, ...args: string[]): string[] {
  return ['tree', ...args, `--kubeconfig=${world.connection.kubeconfig}`, '-n', world.namespace.name];
}

const tree = (world: MachineSetWorld, ...args: string[]): Promise<Ending> =>
  Program.run('machinist', argsOf(world, ...args));

describe('machinist tree', () => {
  test('shows a MachineDeployment with its machines, and follows what happens to it', async () => {
    await using world = await MachineSetWorld.start({ startMs: 10, stopMs: 10 });
    await world.createDeployment(2);
    await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
    await using live = new Program('machinist', argsOf(world, '-w'));
    await live.says('MachineDeployment/d', SAYS_MS);

    await world.patch(machineDeployments, 'd', { spec: { paused: true } });

    await live.says('! Paused: nothing is rolled out until the rollout is resumed', SAYS_MS);
    const [text, json, names] = [
      await tree(world, 'mcd/d'),
      await tree(world, '-o', 'json'),
      await tree(world, '-o=name'),
    ];
    expect(text).toMatchObject({ code: 0, stderr: '' });
    const machine = String.raw`[├└]─Machine/d-\S+ +Running +\S+ +Running`;
    expect(text.stdout).toMatch(
      new RegExp(
        `\nMachineDeployment/d .*Paused.*\n│ ! Paused[^]*└─MachineSet/d-.*revision 1.*\n(?: {2}${machine}.*\n){2}$`,
      ),
    );
    const [root] = JSON.parse(json.stdout) as [TreeNode];
    expect(root).toMatchObject({ kind: 'MachineDeployment', name: 'd', attention: 'attention' });
    expect(root.children[0]?.children.map(({ attention }) => attention)).toEqual(['ok', 'ok']);
    expect(names.stdout).toMatch(
      /^machinedeployment\.machine\.sapcloud\.io\/d\nmachineset.*\nmachine\.machine.*\nmachine.*\n$/,
    );
  }, 120_000);

  test('says in one line what is wrong', async () => {
    await using world = await MachineSetWorld.start({ startMs: 10, stopMs: 10 });

    expect(await tree(world)).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: no resources found in ${world.namespace.name} namespace\n`,
    });
    expect((await tree(world, 'no')).stderr).toBe('error: machinedeployments.machine.sapcloud.io "no" not found\n');
    expect((await tree(world, 'pod/a')).stderr).toContain('error: unknown type "pod"');
    expect((await tree(world, 'd', '-l', 'a=b')).stderr).toContain('names cannot be used with --selector');
    expect((await tree(world, '-w', '-o', 'json')).stderr).toContain('--watch shows text only');
  }, 120_000);
});

import { expect, test } from '@jest/globals';

import { NodeKeeper } from '../../packages/providers/sim/node-keeper.ts';
import { SimCloud } from '../../packages/providers/sim/cloud.ts';
import { conditionsOf, type NodeReadiness } from '../../packages/providers/sim/node.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { strategicPatch } from '../../pkg/kube/client/patch.ts';
import { nodes } from '../../pkg/kube/client/resource.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { privateApiServer } from '../env/api-server.ts';
import { connect, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';

test('a simulated VM that vanishes while its Node registers leaves a Node that is not ready', async () => {
  const name = `vanishing-${process.pid}`;
  const own = new AbortController();
  await using admin = new KubeSession(connect());
  const { clock } = admin;
  const cloud = new SimCloud({ clock, journal: undefined });
  await using kubelets = new KubeSession(connect(), {
    writer: {
      async intercept({ text }, send) {
        if (text.startsWith('POST') && cloud.named(name).length > 0) {
          for (const { providerID } of cloud.named(name)) cloud.remove(providerID, 'vanished');
          // The keeper has looked for a Node to report, and found none.
          await eventually(() => kubelets.count('get', 'nodes') > 0);
        }
        return await send();
      },
    },
  });
  const { reader, writer } = kubelets;
  const keeper = {
    cloud,
    reader,
    writer,
    clock,
    log: silentLogger,
    leases: false,
    registration: { otherIDs: false, uninitialized: false },
  };
  // oxlint-disable-next-line no-new -- it works by itself
  new NodeKeeper(keeper, own.signal);

  cloud.plant({ machineName: name, namespace: 'ns', className: 'class', join: true });

  await eventually(() => kubelets.count('patch', 'nodes/status') > 0, { describe: 'the Node to be reported' });
  await eventually(async () => {
    const { status } = await admin.reader.get(nodes, { name });
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'Unknown' }));
  });
  own.abort();
  const { metadata } = await admin.reader.get(nodes, { name });
  await admin.writer.delete('destroy', nodes, { name }, { uid: metadata.uid });
});

test('simulated Nodes that a server which was set back shows otherwise say again how they are', async () => {
  const names = ['well', 'ill', 'again'].map((name) => `${name}-${process.pid}`);
  const [well = '', ill = '', again = ''] = names;
  const own = new AbortController();
  await using server = await privateApiServer(WITHOUT_KUBELETS);
  await using admin = new KubeSession(server.connection);
  const { clock, reader, writer } = admin;
  const cloud = new SimCloud({ clock, journal: undefined });
  const registration = { otherIDs: false, uninitialized: false };
  const keeper = new NodeKeeper(
    { cloud, reader, writer, clock, log: silentLogger, leases: false, registration },
    own.signal,
  );
  const readyOf = async (name: string): Promise<string | undefined> => {
    const { status } = await reader.get(nodes, { name });
    return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  };
  const setBack = async (name: string, readiness: NodeReadiness): Promise<void> => {
    const conditions = conditionsOf(readiness, toTimestamp(clock.now()));
    const node = await reader.get(nodes, { name });
    await writer.patch('change', nodes, { name }, strategicPatch(node, { status: { conditions } }, 'status'));
  };
  for (const machineName of names) {
    cloud.plant({ machineName, namespace: 'ns', className: 'class', join: true });
    await eventually(async () => expect(await readyOf(machineName)).toBe('True'));
  }
  const remove = async (name: string): Promise<void> => {
    const { metadata } = await reader.get(nodes, { name });
    await writer.delete('destroy', nodes, { name }, { uid: metadata.uid });
  };
  await keeper.setReadiness(ill, 'not-ready');
  await keeper.setReadiness(again, 'unknown');
  await remove(again);
  keeper.restart(again);
  await eventually(async () => expect(await readyOf(again)).toBe('True'));
  await setBack(again, 'unknown');
  await setBack(well, 'unknown');
  await setBack(ill, 'ready');

  keeper.repost();

  await eventually(async () => expect(await Promise.all(names.map(readyOf))).toEqual(['True', 'False', 'True']));
  own.abort();
  for (const name of names) await remove(name);
});

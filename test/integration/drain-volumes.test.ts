import { randomBytes } from 'node:crypto';

import { describe, expect, test } from '@jest/globals';

import type { DrainProgress } from '../../pkg/drain/drain.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { Node, Pod, VolumeAttachment } from '../../pkg/apis/wire.ts';
import { privateControlPlane } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { DrainCluster } from './drain-cluster.ts';

const never = new AbortController().signal;
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';

/** Plays the cloud's volumes by hand, so that the controller that attaches must not run. */
function plane(): Promise<ControlPlane> {
  return privateControlPlane({ controllers: ['serviceaccount-controller'] });
}

/** A bound claim over a CSI volume; returns the volume's name, which is also its handle. */
async function volume(cluster: DrainCluster, claim: string): Promise<string> {
  const name = `pv-${randomBytes(4).toString('hex')}`;
  const storage = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  await cluster.create('/api/v1/persistentvolumes', {
    metadata: { name },
    spec: {
      ...storage,
      capacity: { storage: '1Gi' },
      csi: { driver: 'csi.example', volumeHandle: name },
      persistentVolumeReclaimPolicy: 'Retain',
    },
  });
  await cluster.create(`/api/v1/namespaces/${cluster.namespace}/persistentvolumeclaims`, {
    metadata: { name: claim },
    spec: { ...storage, volumeName: name, resources: { requests: { storage: '1Gi' } } },
  });
  return name;
}

async function attach(cluster: DrainCluster, node: Node, volumeName: string): Promise<string> {
  const made = await cluster.create<VolumeAttachment>(ATTACHMENTS, {
    metadata: { name: `a-${randomBytes(4).toString('hex')}` },
    spec: { attacher: 'csi.example', nodeName: node.metadata.name, source: { persistentVolumeName: volumeName } },
  });
  const { name } = made.metadata;
  await cluster.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } });
  await eventually(() => cluster.target.volumeAttachments.get(name)?.status?.attached === true);
  return name;
}

function podWith(cluster: DrainCluster, node: Node, claim: string, priorityClassName?: string): Promise<Pod> {
  return cluster.pod(node.metadata.name, ({ spec }) => {
    spec['volumes'] = [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
    if (priorityClassName !== undefined) spec['priorityClassName'] = priorityClassName;
  });
}

/** Pods that end or wait for their turn are told of too. */
function volumesIn(blocked: DrainProgress['blocked']): DrainProgress['blocked'] {
  return blocked.filter(({ reason }) => reason.startsWith('volume-'));
}

describe('a drain of pods with volumes', () => {
  test('moves one after the other, the most important first, each until its volume has arrived elsewhere', async () => {
    await using control = await plane();
    await using cluster = await DrainCluster.open({ connection: control.connection });
    const [node, other] = [await cluster.node(), await cluster.node()];
    const volumes = { low: await volume(cluster, 'low'), high: await volume(cluster, 'high') };
    const attached = { low: await attach(cluster, node, volumes.low), high: await attach(cluster, node, volumes.high) };
    await podWith(cluster, node, 'low');
    await podWith(cluster, node, 'high', 'system-node-critical');
    const plain = await cluster.pod(node.metadata.name);
    cluster.endPods(node.metadata.name);
    const seen: DrainProgress[] = [];
    const waitsFor = (reason: string): Promise<unknown> =>
      eventually(() => seen.at(-1)?.blocked.some((blocked) => blocked.reason === reason), { describe: reason });

    const patient = { pvDetachTimeoutMs: 20 * 60_000, pvReattachTimeoutMs: 20 * 60_000 };
    const request = cluster.request(node, patient, 60 * 60_000);
    const drained = cluster.drain(request, never, (progress) => seen.push(progress));
    await waitsFor('volume-detach');
    await eventually(async () => (await cluster.podsOf(node.metadata.name)).length === 1);
    const whileFirst = await cluster.podsOf(node.metadata.name);
    await cluster.delete(`${ATTACHMENTS}/${attached.high}`);
    await waitsFor('volume-reattach');
    await attach(cluster, other, volumes.high);
    await eventually(() => seen.at(-1)?.blocked.some(({ detail }) => detail === volumes.low));
    await cluster.delete(`${ATTACHMENTS}/${attached.low}`);
    await waitsFor('volume-reattach');
    await attach(cluster, other, volumes.low);

    await expect(drained).resolves.toEqual({ kind: 'drained' });
    expect(whileFirst[0]?.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName).toBe('low');
    expect(whileFirst.map(({ metadata }) => metadata.name)).not.toContain(plain.metadata.name);
  });

  test('gives up a volume that does not come off, and one that nobody wants, each in its time', async () => {
    await using control = await plane();
    await using cluster = await DrainCluster.open({ connection: control.connection });
    const node = await cluster.node();
    const [stuck, unwanted] = [await volume(cluster, 'a-stuck'), await volume(cluster, 'b-unwanted')];
    await attach(cluster, node, stuck);
    const loose = await attach(cluster, node, unwanted);
    await podWith(cluster, node, 'a-stuck', 'system-node-critical');
    await podWith(cluster, node, 'b-unwanted');
    cluster.endPods(node.metadata.name);
    const reasons: string[] = [];

    const request = cluster.request(node, { pvDetachTimeoutMs: 240_000 });
    const drained = cluster.drain(request, never, ({ blocked }) => {
      for (const { reason, detail } of volumesIn(blocked)) reasons.push(`${reason} ${detail}`);
    });
    await eventually(() => reasons.includes(`volume-detach ${unwanted}`));
    await cluster.delete(`${ATTACHMENTS}/${loose}`);

    await expect(drained).resolves.toEqual({ kind: 'drained' });
    expect([...new Set(reasons)]).toEqual([
      `volume-detach ${stuck}`,
      `volume-detach ${unwanted}`,
      `volume-reattach ${unwanted}`,
    ]);
  });

  test('waits for no volume that is not attached, and recognises one by the id that the driver knows', async () => {
    await using control = await plane();
    await using cluster = await DrainCluster.open({ connection: control.connection });
    const node = await cluster.node();
    const { name } = node.metadata;
    const [share, disk] = [await volume(cluster, 'share'), await volume(cluster, 'disk')];
    await podWith(cluster, node, 'share');
    await podWith(cluster, node, 'disk');
    cluster.endPods(name);
    const volumesAttached = [{ name: 'kubernetes.io/csi/csi.example^cloud-disk-1', devicePath: '' }];
    await cluster.patch(`/api/v1/nodes/${name}/status`, { status: { volumesAttached } });
    await eventually(() => cluster.target.nodes.get(name)?.status?.volumesAttached?.length === 1);
    const waited = new Set<string>();
    const volumeIDOf = (spec: unknown): Promise<string | undefined> => {
      const { csi } = spec as { csi: { volumeHandle: string } };
      return Promise.resolve(csi.volumeHandle === disk ? 'cloud-disk-1' : undefined);
    };

    const outcome = await cluster.drain(cluster.request(node, { volumeIDOf, pvDetachTimeoutMs: 1_000 }), never, (p) => {
      for (const { detail } of volumesIn(p.blocked)) waited.add(detail);
    });

    expect(outcome).toEqual({ kind: 'drained' });
    expect(waited).toEqual(new Set([disk]));
    expect(waited).not.toContain(share);
  });
});

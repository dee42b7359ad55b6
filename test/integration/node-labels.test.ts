import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { applyManifests, type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machineDeployments, machines, nodeLabelPolicies, nodes } from '../../pkg/kube/client/resource.ts';
import { forCreation, machineDeployment } from '../builders.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const ADMISSION = path.join(import.meta.dirname, '../../deploy/policies/node-labels.yaml');

const templateOf = (labels: Record<string, string>): object => ({ nodeTemplate: { metadata: { labels } } });

/** The shipped admission, for one namespace: other tests share the server. */
async function admitted(namespace: string): Promise<AsyncDisposable> {
  const api = connect().api();
  const manifests = parseManifests(readFileSync(ADMISSION, 'utf8')).map((manifest): Manifest => {
    const { kind, metadata, spec } = manifest as Manifest & { spec: Record<string, unknown> };
    const name = `${metadata.name}-${namespace}`;
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    const ours = kind.endsWith('Binding') ? { policyName: name, matchResources: { namespaceSelector } } : {};
    return { ...manifest, metadata: { name }, spec: { ...spec, ...ours } };
  });
  await applyManifests(api, manifests);
  return {
    async [Symbol.asyncDispose]() {
      for (const { kind, metadata } of manifests.toReversed()) {
        const plural = kind.endsWith('Binding') ? 'validatingadmissionpolicybindings' : 'validatingadmissionpolicies';
        await api.send('DELETE', `/apis/admissionregistration.k8s.io/v1/${plural}/${metadata.name}`);
      }
      await api.close();
    },
  };
}

// promise: node-labels/admission-kept-node-told
// promise: openstack/labels-nodes/reaches-node-leaves-again
// promise: openstack/labels-nodes/admission-node-lacks-condition
test('a Node is given the labels that the policy of the namespace allows, as soon as it does, and keeps them', async () => {
  await using world = await MachineWorld.open();
  const { reader, writer } = world.user;
  // Before the Machine: its Node is given whatever labels no policy keeps from it.
  const policy = { namespace: world.namespace, name: 'labels' };
  await writer.create('create', nodeLabelPolicies, {
    metadata: policy,
    spec: { allowed: [{ key: 'tier', value: 'web' }] },
  });
  const name = await world.create((m) => {
    Object.assign(m.spec, templateOf({ tier: 'db', 'example.com/rack': '7' }));
  });
  await world.settled(name);
  const labels = async (): Promise<unknown[]> => {
    const { metadata } = await reader.get(nodes, { name });
    return [metadata.labels?.['tier'], metadata.labels?.['example.com/rack']];
  };
  const refusal = async (): Promise<string> =>
    (await world.read(name)).status?.machineConditions?.find(({ type }) => type === 'NodeSyncRefused')?.message ?? '';
  const allow = async (allowed: { key: string; value?: string }[]): Promise<void> => {
    const change = { spec: { allowed } };
    await writer.patch(
      'change',
      nodeLabelPolicies,
      policy,
      mergePatch(await reader.get(nodeLabelPolicies, policy), change),
    );
  };

  await eventually(async () => {
    expect(await refusal()).toContain(
      'label example.com/rack (NodeLabelPolicy labels does not allow this key), label tier (NodeLabelPolicy labels allows "web")',
    );
  }, PATIENCE);
  expect(await labels()).toEqual([undefined, undefined]);
  await eventually(async () => {
    const told = (await reader.list(events, { namespace: world.namespace })).items;
    expect(told.filter(({ reason }) => reason === 'NodeSyncRefused')).toHaveLength(1);
  }, PATIENCE);

  await allow([{ key: 'tier' }]);
  await eventually(async () => expect(await labels()).toEqual(['db', undefined]), PATIENCE);
  await allow([{ key: 'example.com/rack' }]);
  await eventually(async () => expect(await labels()).toEqual(['db', '7']), PATIENCE);
  await eventually(async () => expect(await refusal()).toBe(''), PATIENCE);
});

// promise: node-labels/label-policy-allows-refused
// promise: openstack/labels-nodes/forbidden-key-rejected-name
test('what a policy does not allow is refused where a user asks for it, and nothing else is held up', async () => {
  await using world = await MachineWorld.open({ connection: connect() }); // it is about an admission policy
  const { writer, reader } = world.user;
  const { namespace } = world;
  await using _admission = await admitted(namespace);
  const forbidden =
    /NodeLabelPolicy labels does not allow label tier=db \(allowed: web, cache\), label rack=7 \(no value of this key\)/;
  const deployment = (name: string, labels: Record<string, string>): ReturnType<typeof machineDeployment> =>
    machineDeployment((d) => {
      Object.assign(d.metadata, { name, namespace });
      Object.assign(d.spec.template.spec ?? {}, templateOf(labels));
    });
  const create = async (name: string, labels: Record<string, string>): Promise<unknown> =>
    writer.create('create', machineDeployments, forCreation(deployment(name, labels)));

  await create('before', { tier: 'db' });
  await writer.create('create', nodeLabelPolicies, {
    metadata: { namespace, name: 'labels' },
    spec: { allowed: [{ key: 'tier', value: 'web' }, { key: 'tier', value: 'cache' }, { key: 'zone' }] },
  });
  // Policies reach the admission by a watch.
  await eventually(async () => {
    const name = `refused-${randomBytes(3).toString('hex')}`;
    await expect(create(name, { tier: 'db', rack: '7' })).rejects.toThrow(forbidden);
  }, PATIENCE);
  await writer.create('create', nodeLabelPolicies, {
    metadata: { namespace, name: 'of-others' },
    spec: { machineLabels: { team: 'other' }, allowed: [] },
  });
  await create('allowed', { tier: 'cache', zone: 'anything' });
  await eventually(async () => {
    const other = deployment(`other-${randomBytes(3).toString('hex')}`, { zone: 'a' });
    Object.assign(other.spec.template.metadata?.labels ?? {}, { team: 'other' });
    await expect(writer.create('create', machineDeployments, forCreation(other))).rejects.toThrow(
      /NodeLabelPolicy of-others does not allow label zone=a/,
    );
  }, PATIENCE);
  await create('still-allowed', { zone: 'anything' });

  // What was there before may stay, and all else of it may change.
  const before = await reader.get(machineDeployments, { namespace, name: 'before' });
  const kept = mergePatch(before, { spec: { replicas: 0, template: { spec: templateOf({ tier: 'db', zone: 'a' }) } } });
  await writer.patch('change', machineDeployments, { namespace, name: 'before' }, kept);
  const wrong = mergePatch(before, { spec: { template: { spec: templateOf({ tier: 'x' }) } } });
  await expect(writer.patch('change', machineDeployments, { namespace, name: 'before' }, wrong)).rejects.toThrow(
    /does not allow label tier=x/,
  );
  await expect(world.create((m) => void Object.assign(m.spec, templateOf({ rack: '7' })))).rejects.toThrow(/rack=7/);
  const controlled = await world.create((m) => {
    Object.assign(m.spec, templateOf({ rack: '7' }));
    const owner = {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineSet',
      name: 's',
      uid: 'u',
      controller: true,
    };
    m.metadata.ownerReferences = [owner];
  });
  expect((await reader.get(machines, { namespace, name: controlled })).metadata.name).toBe(controlled);
});

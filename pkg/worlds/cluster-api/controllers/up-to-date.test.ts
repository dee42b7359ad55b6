import { describe, expect, test } from '@jest/globals';

import type { ContractReference } from '../api/contract.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { ExternalLookup } from './externals.ts';
import { upToDateOf } from './up-to-date.ts';

const CREATED = '2026-01-01T00:00:00Z';
const CREATED_MS = Date.parse(CREATED);
const NOW_MS = CREATED_MS + 60_000;
const TEMPLATE = {
  clusterName: 'c',
  version: 'v1.34.0',
  failureDomain: 'a',
  bootstrap: { configRef: { apiGroup: 'b', kind: 'KubeadmConfigTemplate', name: 'b-1' } },
  infrastructureRef: { apiGroup: 'i', kind: 'DevMachineTemplate', name: 'i-1' },
};

function object(name: string, owner: string | undefined, spec: object): KubeObject {
  const ownerReferences =
    owner === undefined ? [] : [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: owner, name: 'o', uid: 'o' }];
  const metadata = { name, uid: name, resourceVersion: '1', creationTimestamp: CREATED, ownerReferences };
  return { metadata, spec } as KubeObject;
}

const of = (spec: object): object => ({ template: { spec } });

function look(
  current: object,
  wanted: object,
  more: { kubelet?: string; deployment?: object; deployed?: ExternalLookup } = {},
) {
  const set = object('s', 'MachineDeployment', of(current));
  const deployment = object('d', undefined, { ...of(wanted), ...more.deployment });
  const find = ({ kind }: ContractReference): ExternalLookup =>
    kind === 'MachineSet'
      ? ({ kind: 'found', object: set } as ExternalLookup)
      : (more.deployed ?? ({ kind: 'found', object: deployment } as ExternalLookup));
  const machine = {
    ...object('m', 'MachineSet', { version: 'v1.34.0' }),
    ...(more.kubelet !== undefined && { status: { nodeInfo: { kubeletVersion: more.kubelet } } }),
  };
  return upToDateOf(machine, find, NOW_MS);
}

// promise: cluster-api/nodes/up-to-date-template
describe('a Machine of a MachineDeployment', () => {
  test.each<{ what: string; wanted: object; says: string }>([
    { what: 'the same template', wanted: TEMPLATE, says: '' },
    {
      what: 'what is changed in place',
      wanted: { ...TEMPLATE, taints: [{ key: 'k' }], deletion: { nodeDrainTimeoutSeconds: 5 }, minReadySeconds: 3 },
      says: '',
    },
    {
      what: 'references of the older version',
      wanted: {
        ...TEMPLATE,
        bootstrap: {
          configRef: { apiVersion: 'b/v1beta1', kind: 'KubeadmConfigTemplate', name: 'b-1', namespace: 'n' },
        },
      },
      says: '',
    },
    {
      what: 'another version',
      wanted: { ...TEMPLATE, version: 'v1.35.0' },
      says: '* Version v1.34.0, v1.35.0 required',
    },
    {
      what: 'another failure domain',
      wanted: { ...TEMPLATE, failureDomain: 'b' },
      says: '* Failure domain a, b required',
    },
    {
      what: 'another template of infrastructure, and another of bootstrap',
      wanted: {
        ...TEMPLATE,
        bootstrap: { configRef: { ...TEMPLATE.bootstrap.configRef, name: 'b-2' } },
        infrastructureRef: { ...TEMPLATE.infrastructureRef, name: 'i-2' },
      },
      says: '* KubeadmConfig is not up-to-date\n* DevMachine is not up-to-date',
    },
  ])('of which it has $what', ({ wanted, says }) => {
    const told = look(TEMPLATE, wanted);

    expect(told).toMatchObject({
      said:
        says === ''
          ? { status: 'True', reason: 'UpToDate' }
          : { status: 'False', reason: 'NotUpToDate', message: says },
      changesInMs: undefined,
    });
  });

  test('with another data Secret says which', () => {
    const given = (name: string): object => ({ ...TEMPLATE, bootstrap: { dataSecretName: name } });

    expect(look(given('one'), given('two'))?.said.message).toBe('* spec.bootstrap.dataSecretName one, two required');
  });

  test.each([
    { kubelet: 'v1.34.0', reason: 'UpToDate' },
    { kubelet: 'v1.33.1', reason: 'Updating' },
  ])('whose kubelet is $kubelet says $reason', ({ kubelet, reason }) => {
    expect(look(TEMPLATE, TEMPLATE, { kubelet })?.said.reason).toBe(reason);
  });

  test.each([
    { member: 'rollout', value: (after: string) => ({ after }) },
    { member: 'rolloutAfter', value: (after: string) => after },
  ])('that is to be replaced later says so when it is time: $member', ({ member, value }) => {
    const at = (seconds: number) =>
      look(TEMPLATE, TEMPLATE, {
        deployment: { [member]: value(new Date(CREATED_MS + seconds * 1_000).toISOString()) },
      });

    expect(at(61)).toMatchObject({ said: { reason: 'UpToDate' }, changesInMs: 1_001 });
    expect(at(59)).toMatchObject({ said: { reason: 'NotUpToDate' }, changesInMs: undefined });
    expect(at(-1)).toMatchObject({ said: { reason: 'UpToDate' }, changesInMs: undefined });
  });

  test.each<{ what: string; deployed: ExternalLookup }>([
    { what: 'is gone', deployed: { kind: 'absent' } },
    { what: 'cannot be read', deployed: { kind: 'unknown', problem: 'p' } },
  ])('which $what says nothing, so that another may', ({ deployed }) => {
    expect(look(TEMPLATE, TEMPLATE, { deployed })).toBeUndefined();
  });
});

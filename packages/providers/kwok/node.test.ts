import { describe, expect, test } from '@jest/globals';

import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import type { TaggedVM } from '../../../pkg/drivers/machine-identity.ts';
import { nodeNameIn, kwokNode, kwokProviderID, vmOf } from './node.ts';

const vm: TaggedVM = {
  providerID: 'kwok:///m-1/0a1b2c3d',
  cluster: 'c-1',
  namespace: 'shoot',
  className: 'small',
  machineName: 'm-1',
  machineUID: 'u-1',
};
const machineClass: MachineClass = {
  metadata: { name: 'small', namespace: 'shoot', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  providerSpec: {},
};
const nothing = { capacity: {}, nodeLabels: {} };

/** A Node as the server gives it back. */
function served(change: Partial<Pick<Node, 'spec'>> & { readonly without?: string } = {}): Node {
  const { without = '', ...rest } = change;
  const made = structuredClone(kwokNode(vm, machineClass, nothing)) as Node;
  delete made.metadata.labels?.[without];
  delete made.metadata.annotations?.[without];
  return { ...made, ...rest };
}

describe('the Node of a VM', () => {
  test('tells all of it', () => {
    expect(vmOf(served())).toEqual(vm);
  });

  test.each([
    { without: 'kwok.machine.sapcloud.io/cluster', tag: { cluster: '' } },
    { without: 'kwok.machine.sapcloud.io/class', tag: { className: '' } },
    { without: 'kwok.machine.sapcloud.io/machine-uid', tag: { machineUID: undefined } },
    // kwok leaves it alone: a machine that is off.
    { without: 'kwok.x-k8s.io/node', tag: {} },
  ])('is a VM without $without, too', ({ without, tag }) => {
    expect(vmOf(served({ without }))).toEqual({ ...vm, ...tag });
  });

  test.each([
    { what: 'without the label', node: served({ without: 'kwok.machine.sapcloud.io/namespace' }) },
    { what: 'without provider id', node: served({ spec: {} }) },
    { what: 'of another provider', node: served({ spec: { providerID: 'aws:///m-1/0a1b2c3d' } }) },
    { what: 'with the id of another Node', node: served({ spec: { providerID: 'kwok:///m-2/0a1b2c3d' } }) },
  ])('$what is no VM', ({ node }) => {
    expect(vmOf(node)).toBeUndefined();
  });

  test.each([
    { id: kwokProviderID('m-1', 'x'), name: 'm-1' },
    { id: 'aws:///zone/i-1', name: undefined },
    { id: '', name: undefined },
  ])('is named by provider id "$id": $name', ({ id, name }) => {
    expect(nodeNameIn(id)).toBe(name);
  });

  test('has the size that the class promises to an autoscaler, and what the provider spec says over it', () => {
    const capacity = { cpu: 2, memory: '8Gi' };
    const nodeTemplate = { capacity, instanceType: 'big', region: 'r', zone: 'z', architecture: 'arm64' };

    const { metadata, status } = kwokNode(
      vm,
      { ...machineClass, nodeTemplate },
      { capacity: { memory: '1Ti' }, nodeLabels: { pool: 'a' } },
    );

    expect(status?.capacity).toEqual({ cpu: '2', memory: '1Ti', pods: '110' });
    expect(status?.allocatable).toEqual(status?.capacity);
    expect(metadata.labels).toEqual({
      'kubernetes.io/hostname': 'm-1',
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'arm64',
      'node.kubernetes.io/instance-type': 'big',
      'topology.kubernetes.io/region': 'r',
      'topology.kubernetes.io/zone': 'z',
      'kwok.machine.sapcloud.io/namespace': 'shoot',
      pool: 'a',
    });
  });

  test.each([
    { gpu: '0', resources: {} },
    { gpu: 8, resources: { 'nvidia.com/gpu': '8' } },
    { gpu: 'many', resources: {} },
  ])('has GPUs by the name that Nodes give them: $gpu are $resources', ({ gpu, resources }) => {
    const nodeTemplate = { capacity: { gpu }, instanceType: '', region: '', zone: '' };

    const { status } = kwokNode(vm, { ...machineClass, nodeTemplate }, nothing);

    expect(status?.capacity).toEqual({ cpu: '4', memory: '16Gi', pods: '110', ...resources });
  });

  test('cannot lose its tag to a label of the provider spec', () => {
    const nodeLabels = { 'kwok.machine.sapcloud.io/namespace': 'elsewhere' };

    const { metadata } = kwokNode(vm, machineClass, { capacity: {}, nodeLabels });

    expect(metadata.labels).toMatchObject({ 'kwok.machine.sapcloud.io/namespace': 'shoot' });
  });
});

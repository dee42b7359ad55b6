import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { LAST_APPLIED_TEMPLATE_ANNOTATION as APPLIED } from '../../../apis/machine/v1alpha1/labels.ts';
import type { NodeTemplateSpec } from '../../../apis/machine/v1alpha1/machine.ts';
import { nodeChange } from './node-template.ts';

const FINALIZER = 'node.machine.sapcloud.io/machine-controller';
const NAME_LABEL = 'node.gardener.cloud/machine-name';

function withTemplate(nodeTemplate: NodeTemplateSpec): ReturnType<typeof machine> {
  return machine((m) => {
    m.spec.nodeTemplate = nodeTemplate;
  });
}

/** A Node that already shows whose it is. */
function ourNode(change: (n: ReturnType<typeof node>) => void = () => undefined): ReturnType<typeof node> {
  return node((n) => {
    n.metadata.finalizers = [FINALIZER];
    n.metadata.labels[NAME_LABEL] = 'm-1';
    change(n);
  });
}

describe('what a Node lacks', () => {
  test('of a machine without template: finalizer and name', () => {
    expect(nodeChange(machine(), node())).toEqual({
      metadata: { finalizers: [FINALIZER], labels: { [NAME_LABEL]: 'm-1' } },
      taints: undefined,
    });
  });

  test('nothing, when it shows all that', () => {
    expect(nodeChange(machine(), ourNode())).toBeUndefined();
  });

  test('labels and annotations of the template, and the record of them', () => {
    const m = withTemplate({ metadata: { labels: { a: '1' }, annotations: { b: '2' } } });

    expect(nodeChange(m, ourNode())?.metadata).toEqual({
      labels: { a: '1' },
      annotations: { b: '2', [APPLIED]: '{"metadata":{"labels":{"a":"1"},"annotations":{"b":"2"}},"spec":{}}' },
    });
  });

  test('the mark that no machine has it is taken away', () => {
    const n = ourNode((o) => {
      o.metadata.annotations['node.machine.sapcloud.io/not-managed-by-mcm'] = '1';
    });

    expect(nodeChange(machine(), n)?.metadata).toEqual({
      annotations: { 'node.machine.sapcloud.io/not-managed-by-mcm': null },
    });
  });

  // promise: node-labels/labels-left-leave-node
  // promise: openstack/labels-nodes/labels-stay
  test('keys that left the template are removed, keys of others stay', () => {
    const n = ourNode((o) => {
      Object.assign(o.metadata.labels, { gone: '1', kept: '2', others: '3' });
      o.metadata.annotations[APPLIED] = '{"metadata":{"labels":{"gone":"1","kept":"2"}},"spec":{}}';
    });
    const change = nodeChange(withTemplate({ metadata: { labels: { kept: '2' } } }), n);

    expect(change?.metadata['labels']).toEqual({ gone: null });
    expect(change?.metadata['annotations']).toEqual({ [APPLIED]: '{"metadata":{"labels":{"kept":"2"}},"spec":{}}' });
  });

  test('a record that Go wrote, with null members, is understood', () => {
    const n = ourNode((o) => {
      o.metadata.labels['a'] = '1';
      o.metadata.annotations[APPLIED] =
        '{"metadata":{"creationTimestamp":null,"labels":{"a":"1"}},"spec":{"taints":null}}';
    });

    expect(nodeChange(withTemplate({ metadata: { labels: { a: '1' } } }), n)).toBeUndefined();
  });

  test('a record that nobody can read is written anew and removes nothing', () => {
    const n = ourNode((o) => {
      o.metadata.labels['others'] = '1';
      o.metadata.annotations[APPLIED] = '{{{';
    });

    expect(nodeChange(machine(), n)?.metadata).toEqual({ annotations: { [APPLIED]: '{"metadata":{},"spec":{}}' } });
  });

  test.each([
    { what: 'missing', current: [], want: [{ key: 'a', effect: 'NoSchedule', value: '1' }] },
    {
      what: 'with another value',
      current: [{ key: 'a', effect: 'NoSchedule', value: '2' }],
      want: [{ key: 'a', effect: 'NoSchedule', value: '1' }],
    },
    { what: 'there', current: [{ key: 'a', effect: 'NoSchedule', value: '1' }], want: undefined },
    {
      what: 'beside those of others',
      current: [{ key: 'o', effect: 'NoExecute' }],
      want: [
        { key: 'o', effect: 'NoExecute' },
        { key: 'a', effect: 'NoSchedule', value: '1' },
      ],
    },
    {
      what: 'withdrawn ones go',
      current: [
        { key: 'w', effect: 'NoSchedule' },
        { key: 'a', effect: 'NoSchedule', value: '1' },
      ],
      want: [{ key: 'a', effect: 'NoSchedule', value: '1' }],
    },
  ])('a taint of the template: $what', ({ current, want }) => {
    const m = withTemplate({ spec: { taints: [{ key: 'a', effect: 'NoSchedule', value: '1' }] } });
    const n = ourNode((o) => {
      o.spec.taints = current;
      o.metadata.annotations[APPLIED] =
        '{"metadata":{},"spec":{"taints":[{"key":"a","effect":"NoSchedule","value":"1"},{"key":"w","effect":"NoSchedule"}]}}';
    });

    expect(nodeChange(m, n)?.taints).toEqual(want);
  });
});

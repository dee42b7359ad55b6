import { expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { LAST_APPLIED_TEMPLATE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { AllowedLabel, NodeLabelPolicy } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import { judgeLabels } from './allowed-labels.ts';

const policy = (name: string, allowed?: readonly AllowedLabel[]): NodeLabelPolicy => ({
  metadata: { ...machine().metadata, name },
  spec: allowed === undefined ? {} : { allowed },
});

interface Row {
  readonly title: string;
  readonly policies: readonly NodeLabelPolicy[];
  readonly asked: Readonly<Record<string, string>>;
  /** On the Node, and recorded as given. */
  readonly given?: Readonly<Record<string, string>>;
  /** On the Node, by somebody else. */
  readonly others?: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly refused?: readonly string[];
}

/** A policy of Machines with these labels, which allows nothing. */
const policyOf = (machineLabels: Readonly<Record<string, string>>): NodeLabelPolicy => ({
  ...policy('p'),
  spec: { machineLabels },
});

// promise: front-end-mirantis/cluster-limits-labels-own
test.each([
  { labels: {}, refused: 1 },
  { labels: { pool: 'a' }, refused: 1 },
  { labels: { pool: 'b' }, refused: 0 },
  { labels: { pool: 'a', other: 'x' }, refused: 0 },
])('a policy concerns Machines with all of $labels: $refused refused', ({ labels, refused }) => {
  const it = machine((m) => {
    m.metadata.labels = { pool: 'a' };
    m.spec.nodeTemplate = { metadata: { labels: { tier: 'web' } } };
  });

  expect(judgeLabels(it, node(), [policyOf(labels)]).refusals).toHaveLength(refused);
});

test.each<Row>([
  { title: 'anything without a policy', policies: [], asked: { a: '1' }, labels: { a: '1' } },
  {
    title: 'a key with any value',
    policies: [policy('p', [{ key: 'a' }])],
    asked: { a: '1', b: '2' },
    labels: { a: '1' },
    refused: ['label b (NodeLabelPolicy p does not allow this key)'],
  },
  {
    title: 'the values that are named for a key',
    policies: [
      policy('p', [
        { key: 'a', value: '1' },
        { key: 'a', value: '2' },
        { key: 'b', value: '2' },
      ]),
    ],
    asked: { a: '2', b: '3' },
    labels: { a: '2' },
    refused: ['label b (NodeLabelPolicy p allows "2")'],
  },
  {
    title: 'an empty value only where it is named',
    policies: [
      policy('p', [
        { key: 'a', value: '' },
        { key: 'b', value: 'x' },
      ]),
    ],
    asked: { a: '', b: '' },
    labels: { a: '' },
    refused: ['label b (NodeLabelPolicy p allows "x")'],
  },
  {
    title: 'nothing, where the list is empty or absent',
    policies: [policy('p', [])],
    asked: { a: '1' },
    labels: {},
    refused: ['label a (NodeLabelPolicy p does not allow this key)'],
  },
  {
    title: 'what every policy allows',
    policies: [policy('p', [{ key: 'a' }, { key: 'b' }]), policy('q', [{ key: 'a' }])],
    asked: { a: '1', b: '2' },
    labels: { a: '1' },
    refused: ['label b (NodeLabelPolicy q does not allow this key)'],
  },
  {
    title: 'what the Node was given while it was allowed',
    policies: [policy('p')],
    asked: { a: '1' },
    given: { a: '1' },
    labels: { a: '1' },
  },
  {
    title: 'the former value, where the present one is not allowed',
    policies: [policy('p', [{ key: 'a', value: '1' }])],
    asked: { a: '2' },
    given: { a: '1' },
    labels: { a: '1' },
    refused: ['label a (NodeLabelPolicy p allows "1")'],
  },
  {
    title: 'nothing because somebody else has labelled the Node so',
    policies: [policy('p')],
    asked: { a: '1' },
    others: { a: '1' },
    labels: {},
    refused: ['label a (NodeLabelPolicy p does not allow this key)'],
  },
])('a node template is given $title', ({ policies, asked, given = {}, others = {}, labels, refused = [] }) => {
  const asking = machine((m) => void (m.spec.nodeTemplate = { metadata: { labels: asked } }));
  const record = JSON.stringify({ metadata: { labels: given }, spec: {} });
  const its = node((n) => {
    Object.assign(n.metadata.labels, given, others);
    n.metadata.annotations[LAST_APPLIED_TEMPLATE_ANNOTATION] = record;
  });

  const verdict = judgeLabels(asking, its, policies);

  expect(verdict.labels).toEqual(labels);
  expect(verdict.refusals.map(({ what, why }) => `${what} (${why})`)).toEqual(refused);
});

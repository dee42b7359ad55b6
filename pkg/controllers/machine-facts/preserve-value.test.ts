import { expect, test } from '@jest/globals';

import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { machine, node } from '../../../test/builders.ts';
import { requestedPreservation } from './preserve-value.ts';

interface Case {
  readonly own?: string;
  readonly last?: string;
  /** What the Node says; `-` is a Node without annotation, `missing` one that is not there, `none` that none is named. */
  readonly node: string;
  readonly asked: string;
}

test.each<Case>([
  { node: 'none', asked: '' },
  { own: 'now', node: 'none', asked: 'now' },
  { own: 'false', node: 'none', asked: 'false' },
  { own: 'always', node: 'none', asked: '' },
  { own: '', node: 'none', asked: '' },
  { own: 'when-failed', node: '-', asked: 'when-failed' },
  { own: 'always', node: '-', asked: '' },
  { own: 'when-failed', last: 'now', node: '-', asked: '' },
  { own: 'now', last: '', node: '-', asked: 'now' },
  { own: 'now', node: 'false', asked: 'false' },
  { own: 'false', node: 'now', asked: 'now' },
  { last: 'now', node: 'when-failed', asked: 'when-failed' },
  { node: 'auto-preserved', asked: 'auto-preserved' },
  { own: 'now', node: 'nwo', asked: 'illegal' },
  { own: 'now', node: '', asked: 'illegal' },
  { own: 'now', node: 'missing', asked: 'now' },
  { own: 'false', last: 'now', node: 'missing', asked: 'false' },
  { last: 'when-failed', node: 'missing', asked: 'when-failed' },
  { node: 'missing', asked: '' },
])('with $own on the Machine, $last taken from the Node, and Node $node, $asked is asked', (given) => {
  const m = machine((built) => {
    if (given.own !== undefined) built.metadata.annotations[PRESERVE_ANNOTATION] = given.own;
    if (given.last !== undefined) built.metadata.annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] = given.last;
  });
  const n = node((built) => {
    if (given.node !== '-') built.metadata.annotations[PRESERVE_ANNOTATION] = given.node;
  });
  const place = given.node === 'none' ? undefined : given.node === 'missing' ? 'missing' : n;

  expect(requestedPreservation(m, place)).toBe(given.asked);
});

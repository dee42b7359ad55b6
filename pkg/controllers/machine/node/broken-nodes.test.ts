import { expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { BrokenNodes } from './broken-nodes.ts';

const MINUTE_MS = 60_000;
const FINE = { Ready: 'True', ReadonlyFilesystem: 'False' };

function start() {
  const clock = new FakeClock();
  const broken = new BrokenNodes({ clock });
  const one = machine() as Machine;
  const shown = (statuses: Readonly<Record<string, string>>, uid = 'uid'): Node =>
    node((n) => {
      n.metadata.uid = uid;
      n.status.conditions = Object.entries(statuses).map(([type, status]) => ({ type, status }) as never);
    });
  /** A minute later. */
  const becomes = (old: Node, current: Node): Node => {
    clock.advance(MINUTE_MS);
    broken.noteDelivered(old, current, () => [one]);
    return current;
  };
  const minutes = (seen: Node): readonly number[] =>
    ['Ready', 'ReadonlyFilesystem'].map((type) => broken.brokenForMs(one, seen, type) / MINUTE_MS);
  return { clock, broken, one, shown, becomes, minutes };
}

test('each condition of a Node is bad since it was seen to become so, and no longer once it is well', () => {
  const { clock, shown, becomes, minutes } = start();

  const silent = becomes(shown(FINE), shown({ ...FINE, Ready: 'Unknown' }));
  const both = becomes(silent, shown({ Ready: 'False', ReadonlyFilesystem: 'True' }));
  clock.advance(MINUTE_MS);
  const bad = minutes(both);
  const well = becomes(both, shown({ ...FINE, ReadonlyFilesystem: 'True' }));

  expect(bad).toEqual([2, 1]);
  expect(minutes(well)).toEqual([Infinity, 2]);
});

test('of a Node that was bad when it was first seen, or is another one, it is not known since when', () => {
  const { shown, becomes, minutes } = start();
  const bad = shown({ ...FINE, Ready: 'Unknown' });

  becomes(bad, shown({ Ready: 'Unknown', ReadonlyFilesystem: 'True' }));
  const other = shown({ Ready: 'Unknown', ReadonlyFilesystem: 'True' }, 'other');

  expect(minutes(bad)).toEqual([Infinity, 0]);
  expect(minutes(other)).toEqual([Infinity, Infinity]);
});

test('nothing is left of a machine that is forgotten', () => {
  const { broken, one, shown, becomes, minutes } = start();
  const bad = becomes(shown(FINE), shown({ ...FINE, Ready: 'Unknown' }));

  broken.forget(one.metadata.uid);

  expect(minutes(bad)).toEqual([Infinity, Infinity]);
});

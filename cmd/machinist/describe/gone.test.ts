import { expect, test } from '@jest/globals';

import type { Event } from '../../../pkg/apis/wire.ts';
import { goneOf } from './gone.ts';

const event = (uid: string, reason: string, lastTimestamp: string): Event =>
  ({ involvedObject: { kind: 'Machine', name: 'm-1', uid }, type: 'Normal', reason, lastTimestamp }) as Event;
const OLD = [event('u-1', 'VMCreated', '2026-01-01T00:00:00Z'), event('u-1', 'VMDeleted', '2026-01-01T00:10:00Z')];
const NEW = [event('u-2', 'Drained', '2026-01-01T00:20:00Z'), event('u-2', 'VMCreated', '2026-01-01T00:15:00Z')];

test.each([
  { what: 'one object', events: OLD, reasons: ['VMCreated', 'VMDeleted'], lastEvent: '2026-01-01T00:10:00Z' },
  {
    what: 'the last of its name',
    events: [...NEW, ...OLD],
    reasons: ['VMCreated', 'Drained'],
    lastEvent: '2026-01-01T00:20:00Z',
  },
  {
    what: 'the last, however listed',
    events: [...OLD, ...NEW],
    reasons: ['VMCreated', 'Drained'],
    lastEvent: '2026-01-01T00:20:00Z',
  },
])('what Events tell of $what that no longer exists is in order', ({ events, reasons, lastEvent }) => {
  const gone = goneOf({ namespace: 'ns', name: 'm-1' }, events);

  expect(gone).toMatchObject({ name: 'm-1', namespace: 'ns', exists: false, lastEvent });
  expect(gone.events.map(({ reason }) => reason)).toEqual(reasons);
});

import { describe as group, expect, test } from '@jest/globals';

import { SECOND } from '../../../test/durations.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import { machineConditions } from '../../../pkg/controllers/machine/explain/conditions.ts';
import { hold, withHold } from '../../../pkg/controllers/machine-facts/replacement-hold.ts';
import { humanDuration } from '../../../pkg/fleet/human-duration.ts';
import type { MachineWork } from '../../../pkg/fleet/machine-work.ts';
import { machine } from '../../../test/builders.ts';
import { describe } from './description.ts';
import { renderDescription } from './render.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');

const unhealthy = machine((m) => {
  m.metadata.ownerReferences = [
    { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 'pool-1', uid: 'u', controller: true },
  ];
  m.status.currentStatus = { phase: 'Unknown', lastUpdateTime: '2026-01-01T00:06:40Z' };
  m.status.conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }];
  m.status.lastOperation = {
    type: 'HealthCheck',
    state: 'Processing',
    errorCode: 'ZoneUnhealthy',
    description: withHold('Machine m-1 is unhealthy.', hold('zone', 'a')),
    lastUpdateTime: '2026-01-01T00:09:00Z',
  };
  m.status.machineConditions = machineConditions(m, NOW - 60 * SECOND);
});

const event = {
  metadata: { name: 'e' },
  involvedObject: {},
  type: 'Warning',
  reason: 'Unhealthy',
  message: 'Node conditions:\n  Ready is Unknown.\n',
  source: { component: 'machine-controller' },
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:06:40Z',
  count: 3,
} as unknown as Event;
const older = { ...event, reason: 'NodeJoined', type: 'Normal', count: 1, lastTimestamp: '2026-01-01T00:01:00Z' };

group('a described machine', () => {
  test('is shown in the layout of kubectl describe', () => {
    expect(renderDescription(describe(unhealthy, [event, older], NOW), NOW)).toBe(
      `Name:            m-1
Namespace:       default
Owner:           MachineSet/pool-1
Class:           class-1
VM:              sim:///m-1
Node:            m-1
Phase:           Unknown
Reason:          ZoneUnhealthy
Message:         Machine m-1 is unhealthy. Not replaced yet: too many machines of zone a became unhealthy at once, so replacing them would not help; restore the zone, or delete a Machine to force its replacement.
Waiting For:     more machines of its zone to be healthy
Since:           2026-01-01T00:06:40Z (3m20s)
Next:            It is replaced unless its Node becomes healthy first; if the Node was deleted, it is replaced anyway. To replace it now, delete the Machine.
Last Operation:  HealthCheck Processing, ZoneUnhealthy (60s ago)
Conditions:
  Type        Status   Age  Reason         Message
  ----        ------   ---  ------         -------
  VMCreated   True     60s  VMCreated      VM sim:///m-1 exists.
  NodeJoined  True     60s  NodeJoined     The Node has joined.
  Healthy     Unknown  60s  ZoneUnhealthy  Machine m-1 is unhealthy. Not replaced yet: too many machines of zone a became unhealthy at once, so replacing them would not help; restore the zone, or delete a Machine to force its replacement.
Node Conditions:
  Type   Status   Age        Reason             Message
  ----   ------   ---        ------             -------
  Ready  Unknown  <unknown>  NodeStatusUnknown
Events:
  Type     Reason      Age                  From                Message
  ----     ------      ---                  ----                -------
  Normal   NodeJoined  9m                   machine-controller  Node conditions: Ready is Unknown.
  Warning  Unhealthy   3m20s (x3 over 10m)  machine-controller  Node conditions: Ready is Unknown.`,
    );
  });

  test('that is nothing but a name is shown too', () => {
    const bare = { metadata: { name: 'm-1', namespace: 'ns' } } as unknown as ReturnType<typeof machine>;

    expect(renderDescription(describe(bare, [], NOW), NOW)).toBe(`Name:         m-1
Namespace:    ns
Phase:        <none>
Reason:       Creating
Message:      Waiting for the provider to create the VM; the request may still be queued.
Waiting For:  the VM to be created
Next:         The VM boots and joins as a Node.
Conditions:  <none>
Node Conditions:  <none>
Events:  <none>`);
  });

  test('is the same as JSON, without members that have no value', () => {
    expect(JSON.parse(JSON.stringify(describe(unhealthy, [event], NOW)))).toMatchObject({
      name: 'm-1',
      namespace: 'default',
      phase: 'Unknown',
      reason: 'ZoneUnhealthy',
      waitingFor: 'more machines of its zone to be healthy',
      since: '2026-01-01T00:06:40Z',
      owner: 'MachineSet/pool-1',
      lastOperation: {
        type: 'HealthCheck',
        state: 'Processing',
        errorCode: 'ZoneUnhealthy',
        at: '2026-01-01T00:09:00Z',
      },
      conditions: [{ type: 'VMCreated' }, { type: 'NodeJoined' }, { type: 'Healthy', reason: 'ZoneUnhealthy' }],
      events: [{ reason: 'Unhealthy', count: 3, message: 'Node conditions:\n  Ready is Unknown.' }],
    });
    expect(describe(machine(), [], NOW)).not.toHaveProperty('waitingFor');
    expect(describe(machine(), [], NOW)).not.toHaveProperty('deletionTimestamp');
  });
});

test.each([
  { seconds: 0, want: '0s' },
  { seconds: 119, want: '119s' },
  { seconds: 200, want: '3m20s' },
  { seconds: 180, want: '3m' },
  { seconds: 3_599, want: '59m' },
  { seconds: 3 * 3_600 + 60, want: '3h1m' },
  { seconds: 30 * 3_600, want: '30h' },
  { seconds: 3 * 86_400 + 7_200, want: '3d2h' },
  { seconds: 100 * 86_400, want: '100d' },
  { seconds: 3 * 365 * 86_400, want: '3y' },
  { seconds: 9 * 365 * 86_400, want: '9y' },
])('$seconds s are shown as $want', ({ seconds, want }) => {
  expect(humanDuration(seconds * SECOND)).toBe(want);
});

test('shows what the manager does about it now, when it tries again, and when the machine becomes Failed', () => {
  const running = [
    { activity: 'create', since: '2026-01-01T00:09:48Z', isQueued: false },
    { activity: 'drain', since: '2026-01-01T00:09:00Z', isQueued: true },
  ];
  const nextAttempt = { of: 'create', at: '2026-01-01T00:10:40Z', attempt: 4 };
  const textOf = (work: MachineWork): string => renderDescription(describe(machine(), [], NOW, { work }), NOW);

  expect(textOf({ running })).toMatch(/\nIn Progress: +create, started 12s ago; drain, queued 60s ago\n/);
  expect(textOf({ running: [], nextAttempt })).toMatch(
    /\nNext Attempt: +2026-01-01T00:10:40Z \(in 40s; create, attempt 4\)\n/,
  );
  expect(textOf({ running: [], nextAttempt: { ...nextAttempt, waitsForClass: 'small' } })).toContain(
    '(in 40s; create, attempt 4; all Machines of MachineClass small wait)\n',
  );
  expect(textOf({ running: [], nextAttempt: { ...nextAttempt, at: '2026-01-01T00:09:59Z' } })).toContain(
    '(now; create',
  );
  expect(textOf({ running: [], failure: { at: '2026-01-01T00:14:00Z', timeout: 'health' } })).toMatch(
    /\nFails At: +2026-01-01T00:14:00Z \(in 4m; health timeout\)\n/,
  );
  expect(textOf({ running: [] })).not.toMatch(/In Progress|Next Attempt|Fails At/);
});

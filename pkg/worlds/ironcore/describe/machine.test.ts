import { expect, test } from '@jest/globals';

import type { IronCoreMachine } from '../api/machine.ts';
import { ironCoreDescription, renderIronCore } from './machine.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const EARLIER = '2026-01-01T00:09:00Z';

test('a Machine of IronCore is described with what is attached, is to be attached, and is still there', () => {
  const machine: IronCoreMachine = {
    metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: EARLIER },
    spec: {
      machineClassRef: { name: 'small' },
      machinePoolRef: { name: 'p' },
      volumes: [
        { name: 'root', localDisk: {} },
        { name: 'data', volumeRef: { name: 'v' } },
      ],
      networkInterfaces: [{ name: 'nic', networkInterfaceRef: { name: 'n' } }],
    },
    status: {
      state: 'Running',
      machineID: 'sim://1',
      conditions: [{ type: 'Ready', status: 'True', reason: 'Running', message: '', lastTransitionTime: EARLIER }],
      volumes: [
        { name: 'root', handle: 'h', state: 'Attached', lastStateTransitionTime: EARLIER },
        { name: 'old', state: 'Pending' },
      ],
    },
  };

  const description = ironCoreDescription(machine, 'unknown', [], NOW);

  expect(description.volumes).toEqual([
    { name: 'root', state: 'Attached', handle: 'h', since: EARLIER },
    { name: 'data', state: '' },
    { name: 'old', state: 'Pending' },
  ]);
  expect(renderIronCore(description, NOW)).toBe(
    `Name:         m
Namespace:    ns
Class:        small
Pool:         p
Machine ID:   sim://1
Power:        On
State:        Running
Reason:       Running
Message:      The Machine is Running in pool p.
Waiting For:  <nothing>
Since:        2026-01-01T00:09:00Z (60s)
Next:         Nothing.
Volumes:
  Name  State     Age        Handle
  ----  -----     ---        ------
  root  Attached  60s        h
  data  <none>    <unknown>
  old   Pending   <unknown>
Network Interfaces:
  Name  State   Age        Handle
  ----  -----   ---        ------
  nic   <none>  <unknown>
Conditions:
  Type   Status  Age  Reason   Message
  ----   ------  ---  ------   -------
  Ready  True    60s  Running
Events:  <none>`,
  );
});

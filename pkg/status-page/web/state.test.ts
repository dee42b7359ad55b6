import { expect, test } from '@jest/globals';

import type { Changes, MachineView } from '../view.ts';
import { NOTHING_KNOWN, withChanges } from './state.ts';

const AT = '2026-01-01T00:00:00Z';

function machine(name: string, more: Partial<MachineView> = {}): MachineView {
  const texts = { reason: 'Running', message: '', nextStep: '' };
  return { ...texts, key: `ns/${name}`, namespace: 'ns', name, phase: 'Running', attention: 'ok', ...more };
}

function arrived(machines: readonly MachineView[], gone: readonly string[] = []): Changes {
  return { at: AT, machines, gone, sections: {} };
}

const KNOWN = withChanges(NOTHING_KNOWN, arrived([machine('a'), machine('b'), machine('c')]), true, 0);

test('changes add, replace and remove Machines, and leave the others', () => {
  const { machines } = withChanges(
    KNOWN,
    arrived([machine('a', { phase: 'Failed' }), machine('d')], ['ns/b']),
    false,
    0,
  );

  expect([...machines.values()].map(({ name, phase }) => `${name} ${phase}`)).toEqual([
    'a Failed',
    'c Running',
    'd Running',
  ]);
  expect(machines.get('ns/c')).toBe(KNOWN.machines.get('ns/c'));
});

test('a connection that begins anew drops what it does not show, and keeps the objects of Machines that are as they were', () => {
  const { machines } = withChanges(KNOWN, arrived([machine('a'), machine('b', { phase: 'Failed' })]), true, 0);

  expect([...machines.keys()]).toEqual(['ns/a', 'ns/b']);
  expect(machines.get('ns/a')).toBe(KNOWN.machines.get('ns/a'));
  expect(machines.get('ns/b')?.phase).toBe('Failed');
});

test('changes without Machines keep the list as it is', () => {
  expect(withChanges(KNOWN, arrived([]), false, 0).machines).toBe(KNOWN.machines);
});

test('the clock of the server is compared with that of the browser', () => {
  expect(withChanges(KNOWN, arrived([]), false, Date.parse(AT) - 5_000).aheadMs).toBe(5_000);
});

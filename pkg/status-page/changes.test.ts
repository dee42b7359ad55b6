import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { WELL } from '../../test/status-page/served-page.ts';
import { changesBetween, encode, NOTHING_SENT } from './changes.ts';
import type { PageSnapshot } from './snapshot.ts';
import type { Changes, MachineView } from './view.ts';
import { NOTHING_KNOWN, withChanges } from './web/state.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');

function snapshot(machines: Readonly<Record<string, string>>, identity = 'a'): PageSnapshot {
  return {
    sections: {
      ...WELL,
      process: { ...WELL.process, identity },
      fleets: [],
      drains: [],
      retries: [],
      exhausted: [],
      history: [],
    },
    machines: Object.entries(machines).map(
      ([name, phase]) =>
        ({
          key: `ns/${name}`,
          name,
          namespace: 'ns',
          phase,
          attention: 'ok',
          reason: '',
          message: '',
          nextStep: '',
        }) satisfies MachineView,
    ),
  };
}

function parsed(text: string | undefined): Changes | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as Changes);
}

test('only what has changed is sent, and nothing where nothing has', () => {
  const before = encode(snapshot({ a: 'Pending', b: 'Running', c: 'Running' }));

  const changes = parsed(
    changesBetween(before, encode(snapshot({ a: 'Running', b: 'Running', d: 'New' }, 'b')), NOW_MS),
  );

  expect(changes?.at).toBe('2026-01-01T00:00:00Z');
  expect(Object.keys(changes?.sections ?? {})).toEqual(['process']);
  expect(changes?.machines.map(({ key }) => key)).toEqual(['ns/a', 'ns/d']);
  expect(changes?.gone).toEqual(['ns/c']);
  expect(
    changesBetween(before, encode(snapshot({ a: 'Pending', b: 'Running', c: 'Running' })), NOW_MS),
  ).toBeUndefined();
});

const anyMachines = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('New', 'Running', '"</script>'));

test('a browser that is told the changes knows the same as one that is told everything', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ machines: anyMachines, identity: fc.string() }), { minLength: 1 }), (history) => {
      let sent = NOTHING_SENT;
      let known = NOTHING_KNOWN;
      for (const [i, { machines, identity }] of history.entries()) {
        const next = encode(snapshot(machines, identity));
        const changes = parsed(changesBetween(sent, next, NOW_MS));
        if (changes !== undefined) known = withChanges(known, changes, i === 0, NOW_MS);
        sent = next;
      }
      const last = history.at(-1);
      const whole = snapshot(last?.machines ?? {}, last?.identity);
      expect(known.sections).toEqual(whole.sections);
      expect(known.machines).toEqual(new Map(whole.machines.map((machine) => [machine.key, machine])));
    }),
  );
});

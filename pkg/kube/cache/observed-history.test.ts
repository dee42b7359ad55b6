import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { List } from '../../apis/meta.ts';
import { SetBackError } from '../gate/outage.ts';
import { ApiError } from '../client/errors.ts';
import type { ListOptions } from '../client/client.ts';
import { machines } from '../client/resource.ts';
import {
  compareLastChange,
  findSetBack,
  type HistoricKind,
  judgeStored,
  ObservedHistory,
  requireNotAhead,
  requireNotOlder,
  requireStored,
  samplesOf,
} from './observed-history.ts';

const signal = new AbortController().signal;

function version(name: string, uid: string, resourceVersion: string): Machine {
  return machine((m) => Object.assign(m.metadata, { name, uid, resourceVersion, namespace: 'shoot' }));
}

function listed(resourceVersion: string, ...items: Machine[]): List<Machine> {
  return { metadata: { resourceVersion }, items };
}

/** A kind whose server answers so, and what it was asked. */
function kindWith(
  answer: (options: ListOptions) => List<Machine>,
  stored: () => Machine | undefined = () => undefined,
): HistoricKind & { readonly asked: ListOptions[] } {
  const asked: ListOptions[] = [];
  return {
    asked,
    resource: machines,
    namespace: 'shoot',
    labelSelector: undefined,
    history: new ObservedHistory(),
    reader: {
      get: () =>
        Promise.resolve().then(() => {
          const object = stored();
          if (object === undefined) throw new ApiError(404, 'NotFound', 'gone');
          return object as never;
        }),
      // The reader is only ever asked for Machines.
      list: (_resource, options = {}) => {
        asked.push(options);
        return Promise.resolve().then(() => answer(options)) as never;
      },
    },
  };
}

/** What a promise comes to, or the name of the error that it ends with. */
async function endOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(String, (err: unknown) => (err instanceof Error ? err.name : String(err)));
}

describe('a server', () => {
  test.each([
    { at: '99', isOlder: true },
    { at: '100', isOlder: false },
    { at: '1000', isOlder: false },
  ])('that is at $at where 100 was known was set back: $isOlder', async ({ at, isOlder }) => {
    const kind = kindWith(() => listed(at));
    kind.history.reached('100');

    expect(await endOf(requireNotOlder(kind, signal))).toBe(isOlder ? 'SetBackError' : 'undefined');
  });

  test('whose answer is overtaken by a watch was not set back', async () => {
    const kind = kindWith(() => {
      kind.history.reached('200');
      return listed('100');
    });
    kind.history.reached('100');

    await expect(requireNotOlder(kind, signal)).resolves.toBeUndefined();
  });

  test('nothing of which is known cannot have been set back', async () => {
    await expect(
      requireNotOlder(
        kindWith(() => listed('1')),
        signal,
      ),
    ).resolves.toBeUndefined();
  });
});

describe('the last change', () => {
  test.each([
    { what: 'is there as it was', items: [version('a', 'u', '50')], found: 'same' },
    { what: 'is there at another version', items: [version('a', 'u', '40')], found: 'SetBackError' },
    { what: 'is of another object', items: [version('a', 'v', '50')], found: 'SetBackError' },
    { what: 'is not there', items: [], found: 'SetBackError' },
    { what: 'is too old to be known', items: new ApiError(410, 'Expired', 'compacted'), found: 'unknown' },
    { what: 'cannot be asked for', items: new ApiError(503, 'ServiceUnavailable', 'starting'), found: 'ApiError' },
  ])('that $what means $found', async ({ items, found }) => {
    const kind = kindWith(() => {
      if (items instanceof ApiError) throw items;
      return listed('50', ...items);
    });
    kind.history.changed(version('a', 'u', '50'));

    expect(await endOf(compareLastChange(kind, signal))).toBe(found);
    expect(kind.asked).toMatchObject([
      { namespace: 'shoot', fieldSelector: 'metadata.name=a', resourceVersion: '50', resourceVersionMatch: 'Exact' },
    ]);
  });

  test('that was a deletion is borne out by absence, and by another object of that name', async () => {
    const answers = [listed('60'), listed('60', version('a', 'v', '60')), listed('60', version('a', 'u', '50'))];
    const kind = kindWith(() => answers.shift() ?? listed('60'));
    kind.history.changed(version('a', 'u', '60'), true);

    await expect(compareLastChange(kind, signal)).resolves.toBe('same');
    await expect(compareLastChange(kind, signal)).resolves.toBe('same');
    await expect(compareLastChange(kind, signal)).rejects.toBeInstanceOf(SetBackError);
  });

  test('is the newest one, in whatever order they come', () => {
    const history = new ObservedHistory();

    for (const resourceVersion of ['9', '100', '20'])
      history.changed(version(`at-${resourceVersion}`, 'u', resourceVersion));
    history.reached('300');

    expect(history.lastChange?.name).toBe('at-100');
    expect(history.newest).toBe('300');
  });
});

describe('a change that was seen at 50', () => {
  test.each([
    { stored: 'as it was', object: version('a', 'u', '50'), isDeletion: false, found: 'same' },
    { stored: 'changed since', object: version('a', 'u', '100'), isDeletion: false, found: 'later' },
    { stored: 'as it was before', object: version('a', 'u', '9'), isDeletion: false, found: 'behind' },
    { stored: 'not at all', object: undefined, isDeletion: false, found: 'gone' },
    { stored: 'as another object since', object: version('a', 'v', '100'), isDeletion: false, found: 'gone' },
    { stored: 'as another object before', object: version('a', 'v', '9'), isDeletion: false, found: 'behind' },
    { stored: 'although it was deleted', object: version('a', 'u', '9'), isDeletion: true, found: 'behind' },
    { stored: 'not at all, as it was deleted', object: undefined, isDeletion: true, found: 'later' },
    { stored: 'as another, as it was deleted', object: version('a', 'v', '9'), isDeletion: true, found: 'later' },
  ])('and is stored $stored: $found', ({ object, isDeletion, found }) => {
    const seen = { namespace: 'shoot', name: 'a', uid: 'u', resourceVersion: '50', isDeletion };

    expect(judgeStored(seen, object?.metadata, { isSelective: false })).toBe(found);
  });

  describe('where those with a label are watched', () => {
    const withLabel = (resourceVersion: string, labels: Readonly<Record<string, string>>): Machine =>
      machine((m) => Object.assign(m.metadata, { name: 'a', uid: 'u', namespace: 'shoot', resourceVersion, labels }));
    const selected = (resourceVersion: string): Machine => withLabel(resourceVersion, { watched: '' });
    const other = (resourceVersion: string): Machine => withLabel(resourceVersion, {});

    test.each([
      { what: 'lost the label', gone: true, stored: other('50'), items: [], end: 'unknown' },
      { what: 'was changed since it lost the label', gone: true, stored: other('60'), items: [], end: 'unknown' },
      { what: 'got the label back', gone: true, stored: selected('60'), items: [selected('60')], end: 'unknown' },
      { what: 'has not lost the label yet', gone: true, stored: selected('40'), items: [], end: 'SetBackError' },
      { what: 'loses the label later', gone: false, stored: other('60'), items: [], end: 'unknown' },
      {
        what: 'has not got the label yet',
        gone: false,
        stored: other('40'),
        items: [selected('50')],
        end: 'SetBackError',
      },
    ])('an object that $what: $end', async ({ gone, stored, items, end }) => {
      const kind = {
        ...kindWith(
          () => listed('70', ...items),
          () => stored,
        ),
        labelSelector: 'watched',
      };
      kind.history.changed(selected('50'), gone);

      expect(await endOf(requireStored(kind, signal))).toBe(end);
    });

    test('asks for no others', async () => {
      const kind = { ...kindWith(() => listed('70')), labelSelector: 'watched' };
      kind.history.changed(selected('50'), true);

      expect(await compareLastChange(kind, signal)).toBe('same');
      await requireNotAhead(kind, signal);
      expect(kind.asked.map(({ labelSelector }) => labelSelector)).toEqual(['watched', 'watched']);
    });
  });

  test.each([
    { what: 'is stored', stored: version('a', 'u', '50'), items: [], found: 'same' },
    { what: 'is not stored yet', stored: version('a', 'u', '40'), items: [], found: 'SetBackError' },
    { what: 'was deleted a moment ago by somebody', stored: undefined, items: [], found: 'unknown' },
    { what: 'was made again', stored: undefined, items: [version('a', 'v', '60')], found: 'unknown' },
    { what: 'is only in lists', stored: undefined, items: [version('a', 'u', '50')], found: 'SetBackError' },
  ])('and $what: $found', async ({ stored, items, found }) => {
    const kind = kindWith(
      () => listed('70', ...items),
      () => stored,
    );
    kind.history.changed(version('a', 'u', '50'));

    expect(await endOf(requireStored(kind, signal))).toBe(found);
  });

  test('proves nothing when everything was read anew meanwhile', async () => {
    const kind = kindWith(
      () => listed('70'),
      () => {
        kind.history.forget();
        return version('a', 'u', '40');
      },
    );
    kind.history.changed(version('a', 'u', '50'));

    expect(await endOf(requireStored(kind, signal))).toBe('unknown');
  });

  test.each([
    { what: 'as it is stored', items: [version('a', 'u', '40')], stored: version('a', 'u', '40'), end: 'undefined' },
    {
      what: 'ahead of etcd',
      items: [version('a', 'u', '50')],
      stored: version('a', 'u', '40'),
      end: 'ServerAheadError',
    },
    { what: 'no more, but etcd does', items: [], stored: version('a', 'u', '40'), end: 'ServerAheadError' },
    { what: 'no more, as etcd', items: [], stored: undefined, end: 'undefined' },
  ])('and lists show it $what: $end', async ({ items, stored, end }) => {
    const kind = kindWith(
      () => listed('70', ...items),
      () => stored,
    );
    kind.history.changed(version('a', 'u', '50'));

    expect(await endOf(requireNotAhead(kind, signal))).toBe(end);
  });

  test('is an absence when a later list does not show it, and stays what it is when an earlier one does not', () => {
    const history = new ObservedHistory();
    history.changed(version('a', 'u', '50'));
    const before = history.lastChange;

    history.listed([version('b', 'w', '30')], '40');
    expect(history.lastChange).toBe(before);
    history.listed([version('a', 'u', '50')], '60');
    expect(history.lastChange).toEqual(before);
    history.listed([version('b', 'w', '30')], '70');
    expect(history.lastChange).toEqual({ ...before, resourceVersion: '70', isDeletion: true });
  });
});

test('of a list that is to be taken, what was changed last, made last, and known last is compared', () => {
  const made = (name: string, resourceVersion: string, creationTimestamp: string): Machine => {
    const one = version(name, name, resourceVersion);
    return { ...one, metadata: { ...one.metadata, creationTimestamp } };
  };
  const items = [
    made('touched', '100', '2026-01-01T00:00:00Z'),
    made('young', '50', '2026-01-03T00:00:00Z'),
    made('known', '40', '2026-01-02T00:00:00Z'),
    made('other', '45', '2026-01-02T00:00:00Z'),
  ];
  const known = { namespace: 'shoot', name: 'known', uid: 'known', resourceVersion: '40', isDeletion: false };
  const gone = { ...known, name: 'gone', uid: 'gone' };

  const namesOf = (before: typeof known | undefined): string[] =>
    samplesOf(items, '120', before).map(({ name, isDeletion }) => (isDeletion ? `no ${name}` : name));
  expect(namesOf(known)).toEqual(['touched', 'young', 'known']);
  expect(namesOf(gone)).toEqual(['touched', 'young', 'no gone']);
  expect(namesOf(undefined)).toEqual(['touched', 'young']);
  expect(samplesOf([], '120', undefined)).toEqual([]);
});

describe('a list shows that an object was set back', () => {
  test.each([
    { what: 'an older version of what the list covers', known: version('a', 'u', '50'), at: '60', shown: true },
    {
      what: 'an older version than a write of ours that it does not cover',
      known: version('a', 'u', '70'),
      at: '60',
      shown: false,
    },
    { what: 'another object of that name', known: version('a', 'v', '50'), at: '60', shown: false },
    { what: 'the same version', known: version('a', 'u', '40'), at: '60', shown: false },
    { what: 'what nobody knew', known: undefined, at: '60', shown: false },
  ])('by $what: $shown', ({ known, at, shown }) => {
    const item = version('a', 'u', '40');

    expect(findSetBack(() => known, { items: [item], resourceVersion: at })).toBe(shown ? item : undefined);
  });
});

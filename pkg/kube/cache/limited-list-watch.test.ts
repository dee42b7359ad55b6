import { expect, test } from '@jest/globals';

import type { KubeObject, List } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { ListWatch } from '../client/list-watch.ts';
import { nodes } from '../client/resource.ts';
import type { WatchEvent } from '../client/watch.ts';
import { LimitedListWatch } from './limited-list-watch.ts';

const MIB = 1024 * 1024;
const { signal } = new AbortController();
const ignored = (): void => undefined;
const TOO_LARGE = { reason: 'RequestEntityTooLarge', message: 'the nodes of the cluster take more than 1 MiB' };

/** With so many kilobytes in a label. */
function node(name: string, kilobytes: number): Node {
  const labels = { large: 'x'.repeat(1_000 * kilobytes) };
  return { metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', labels } };
}

function sourceOf(pages: readonly (readonly Node[])[], events: readonly WatchEvent<Node>[] = []): ListWatch<Node> {
  const left = [...pages];
  return {
    resource: nodes,
    selection: {},
    list: (): Promise<List<Node>> =>
      Promise.resolve({
        metadata: { resourceVersion: '1', continue: 'more' },
        items: [...(left.shift() ?? [])],
      } as List<Node>),
    async *watch() {
      await Promise.resolve();
      yield* events;
    },
    answeredSince: () => Promise.resolve(),
  };
}

async function seen(watch: AsyncIterable<WatchEvent<KubeObject>>): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of watch) types.push(type);
  return types;
}

test('a list ends at the page with which it takes too much', async () => {
  const limited = new LimitedListWatch(sourceOf([[node('a', 400)], [node('b', 400)], [node('c', 400)]]), MIB, ignored);

  await limited.list({ signal });
  await limited.list({ signal, continue: 'more' });

  await expect(limited.list({ signal, continue: 'more' })).rejects.toMatchObject(TOO_LARGE);
});

test('many objects take too much however small they are', async () => {
  const all = Array.from({ length: 1_100 }, (_, i) => node(`n-${i}`, 0));

  await expect(new LimitedListWatch(sourceOf([all]), MIB, ignored).list({ signal })).rejects.toMatchObject(TOO_LARGE);
});

test('after a watch was too large, so is each watch until a list tells of less; both are told', async () => {
  const told: (string | undefined)[] = [];
  const events = [{ type: 'ADDED' as const, object: node('b', 800) }];
  const limited = new LimitedListWatch(sourceOf([[node('a', 800)], []], events), MIB, (err) => told.push(err?.message));
  await limited.list({ signal });

  for (let i = 0; i < 2; i++) {
    await expect(seen(limited.watch({ signal }))).rejects.toMatchObject({ code: 410, reason: 'Expired' });
  }
  await limited.list({ signal });

  expect(await seen(limited.watch({ signal }))).toEqual(['ADDED']);
  expect(told).toEqual([TOO_LARGE.message, TOO_LARGE.message]);
});

test('that there is no longer too much is told once a whole list was read', async () => {
  const told: (string | undefined)[] = [];
  const source = sourceOf([]);
  const pages = [[node('a', 1_100)], [node('a', 400)]];
  const list = (): Promise<List<Node>> =>
    Promise.resolve({ metadata: { resourceVersion: '1' }, items: pages.shift() ?? [] } as List<Node>);
  const limited = new LimitedListWatch({ ...source, list }, MIB, (err) => told.push(err?.message));

  await expect(limited.list({ signal })).rejects.toMatchObject(TOO_LARGE);
  await limited.list({ signal });
  await limited.list({ signal });

  expect(told).toEqual([TOO_LARGE.message, undefined]);
});

test('what a new list tells takes the place of what was told before', async () => {
  const limited = new LimitedListWatch(sourceOf([[node('a', 800)], [node('b', 800)]]), MIB, ignored);

  await limited.list({ signal });

  await expect(limited.list({ signal })).resolves.toMatchObject({ items: [{ metadata: { name: 'b' } }] });
});

test.each([
  {
    what: 'added to what was listed',
    events: [{ type: 'ADDED', object: node('b', 800) }],
    ends: true,
  },
  { what: 'changed to something large', events: [{ type: 'MODIFIED', object: node('a', 1_100) }], ends: true },
  {
    what: 'changed many times',
    events: Array.from({ length: 5 }, () => ({ type: 'MODIFIED', object: node('a', 800) })),
    ends: false,
  },
  {
    what: 'added after another was deleted',
    events: [
      { type: 'DELETED', object: node('a', 800) },
      { type: 'ADDED', object: node('b', 800) },
    ],
    ends: false,
  },
] as const)('a watch of an object that is $what ends: $ends', async ({ events, ends }) => {
  const limited = new LimitedListWatch(
    sourceOf([[node('a', 800)]], events as readonly WatchEvent<Node>[]),
    MIB,
    ignored,
  );
  await limited.list({ signal });

  const watched = await seen(limited.watch({ signal })).catch(({ message }: Error) => [message]);

  expect(watched).toEqual(ends ? [TOO_LARGE.message] : events.map(({ type }) => type));
});

test('a watch that begins with all objects is limited as a list is', async () => {
  const events = ['a', 'b'].map((name) => ({ type: 'ADDED' as const, object: node(name, 600) }));
  const limited = new LimitedListWatch(sourceOf([], events), MIB, ignored);

  await expect(seen(limited.watch({ signal, sendInitialEvents: true }))).rejects.toMatchObject(TOO_LARGE);
});

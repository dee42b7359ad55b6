import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { ApiError } from '../client/errors.ts';
import type { ListWatch, PageOptions } from '../client/list-watch.ts';
import { listAll } from './pager.ts';

const { signal } = new AbortController();
const named = (name: string): Machine => machine((m) => void (m.metadata.name = name));
const expired = new ApiError(410, 'Expired', 'The provided continue parameter is too old');

/** One answer of the server: names, and the token with which the next page is asked for. */
interface Page {
  readonly names: readonly string[];
  readonly at: string;
  readonly more?: string;
}

/** A server that answers the lists of one reader in turn, and what it was asked. */
class Server implements Pick<ListWatch<Machine>, 'list'> {
  readonly asked: Omit<PageOptions, 'signal'>[] = [];
  readonly #answers: (Page | ApiError)[];

  constructor(...answers: readonly (Page | ApiError)[]) {
    this.#answers = [...answers];
  }

  list({ signal: _signal, ...options }: PageOptions): ReturnType<ListWatch<Machine>['list']> {
    this.asked.push(options);
    const answer = this.#answers.shift();
    if (answer === undefined || answer instanceof ApiError)
      return Promise.reject(answer ?? new Error('asked once more'));
    const { names, at, more } = answer;
    const metadata = { resourceVersion: at, ...(more === undefined ? {} : { continue: more }) };
    return Promise.resolve({ metadata, items: names.map(named) });
  }
}

async function listed(server: Server, resourceVersion = ''): Promise<{ names: string[]; at: string }> {
  const list = await listAll(server, { resourceVersion, signal, pageSize: 2 });
  return { names: list.items.map(({ metadata }) => metadata.name), at: list.resourceVersion };
}

describe('a list in pages', () => {
  test.each([
    { what: 'no more token', more: undefined },
    { what: 'an empty token', more: '' },
  ])('is that of its first page, and ends with $what', async ({ more }) => {
    const last = { names: ['c'], at: '7', ...(more === undefined ? {} : { more }) };
    const server = new Server({ names: ['a', 'b'], at: '5', more: 'next' }, last);

    expect(await listed(server)).toEqual({ names: ['a', 'b', 'c'], at: '5' });
    expect(server.asked).toEqual([
      { resourceVersion: '', limit: 2 },
      { limit: 2, continue: 'next' },
    ]);
  });

  test('whose token expires half-way is read again in one piece by quorum, and nothing of before is kept', async () => {
    const server = new Server({ names: ['a', 'gone'], at: '5', more: 'next' }, expired, { names: ['a', 'c'], at: '9' });

    expect(await listed(server, '0')).toEqual({ names: ['a', 'c'], at: '9' });
    expect(server.asked).toEqual([
      { resourceVersion: '0', limit: 2 },
      { limit: 2, continue: 'next' },
      { resourceVersion: '' },
    ]);
  });

  test('fails with any other error of a page, and with an expired first one', async () => {
    const busy = new ApiError(429, 'TooManyRequests', 'busy');

    await expect(listed(new Server({ names: ['a'], at: '5', more: 'next' }, busy))).rejects.toBe(busy);
    await expect(listed(new Server(expired))).rejects.toBe(expired);
  });
});

test('a list that is not older than a version is not read in pages: with a limit it would be of exactly that version', async () => {
  const server = new Server({ names: ['a'], at: '8' });

  expect(await listed(server, '6')).toEqual({ names: ['a'], at: '8' });
  expect(server.asked).toEqual([{ resourceVersion: '6', resourceVersionMatch: 'NotOlderThan' }]);
});

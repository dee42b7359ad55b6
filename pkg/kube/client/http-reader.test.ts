import { describe, expect, test } from '@jest/globals';

import { ApiError } from './errors.ts';
import { HttpReader } from './http-reader.ts';
import { machines, nodes, secrets } from './resource.ts';
import type { Transport } from './transport.ts';

/** A reader of a server that gives `answer` to everything. */
const readerOf = (answer: unknown): HttpReader =>
  new HttpReader({ request: () => Promise.resolve(answer) } as unknown as Transport);
const metadata = { resourceVersion: '7' };

describe('an answer with which nothing can be done is as none', () => {
  test.each([
    { what: 'no body', answer: undefined },
    { what: 'null', answer: null },
    { what: 'an empty object', answer: {} },
    { what: 'another object', answer: { status: 'ok' } },
    { what: 'metadata that say nothing', answer: { metadata: {}, items: [] } },
    { what: 'metadata without a list', answer: { metadata } },
    { what: 'items that are no list', answer: { metadata, items: {} } },
    { what: 'items that are no objects', answer: { metadata, items: [null] } },
  ])('$what', async ({ answer }) => {
    const reader = readerOf(answer);

    await expect(reader.get(machines, { name: 'm' })).rejects.toThrow(ApiError);
    await expect(reader.list(machines)).rejects.toThrow(ApiError);
    await expect(reader.get(machines, { name: 'm' }, { metadataOnly: true })).rejects.toThrow(ApiError);
    await expect(reader.list(machines, { metadataOnly: true })).rejects.toThrow(ApiError);
    await expect(reader.list(nodes)).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
  });
});

test.each([{ items: null }, { items: [] }])('a list of nothing may be written as $items', async ({ items }) => {
  const reader = readerOf({ metadata, items });

  expect(await reader.list(machines)).toEqual({ metadata, items: [] });
  expect(await reader.list(machines, { metadataOnly: true })).toEqual({ metadata, items: [] });
});

test.each([
  { metadataOnly: true, accept: true },
  { metadataOnly: undefined, accept: false },
] as const)('an object is asked for with its metadata alone: $metadataOnly', async ({ metadataOnly, accept }) => {
  const asked: boolean[] = [];
  const request = (call: { readonly accept?: string }): Promise<unknown> => {
    asked.push(call.accept?.includes('as=PartialObjectMetadata;') ?? false);
    return Promise.resolve({ metadata: { name: 's', resourceVersion: '7' } });
  };
  // A reader asks nothing else of its transport.
  const reader = new HttpReader({ request } as unknown as Transport);

  const ref = { namespace: 'shoot', name: 's' };
  const secret = await reader.get(secrets, ref, metadataOnly === undefined ? {} : { metadataOnly });

  expect(asked).toEqual([accept]);
  expect(secret.metadata.resourceVersion).toBe('7');
});

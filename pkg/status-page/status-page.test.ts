import { get } from 'node:http';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { fleetOf, workOf } from '../../test/status-page/fleet-of-many.ts';
import { hourOf, servePage, WELL } from '../../test/status-page/served-page.ts';

let page: Awaited<ReturnType<typeof servePage>>;

beforeAll(async () => {
  const objects = fleetOf(1, 1);
  page = await servePage({ objects, work: workOf(objects), process: WELL, history: hourOf(1) });
});

afterAll(async () => await page[Symbol.asyncDispose]());

/** The status of an answer, of which no more is read. */
async function statusOf(url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      resolve(response.statusCode);
      response.destroy();
    });
    request.on('error', reject);
  });
}

test.each([
  { site: 'cross-site', status: 403 },
  // Another port of this host, which may be anybody's.
  { site: 'same-site', status: 403 },
  { site: 'same-origin', status: 200 },
  { site: 'none', status: 200 },
])('events are served to a page of $site with $status', async ({ site, status }) => {
  expect(await statusOf(`${page.url}events`, { 'sec-fetch-site': site })).toBe(status);
});

test.each([
  { path: '', status: 403 },
  { path: 'events', status: 403 },
])('/ui/$path is served under a name of others with $status', async ({ path, status }) => {
  expect(await statusOf(`${page.url}${path}`, { host: 'evil.example' })).toBe(status);
});

test('paths that monitoring reads are served under any name: it may have one of its own', async () => {
  const { origin } = new URL(page.url);

  const statuses = await Promise.all(
    ['livez', 'metrics', 'configz'].map((path) => statusOf(`${origin}/${path}`, { host: 'metrics.example' })),
  );

  expect(statuses).toEqual([200, 200, 200]);
});

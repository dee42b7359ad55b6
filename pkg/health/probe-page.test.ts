import { describe, expect, test } from '@jest/globals';

import { Checks } from './checks.ts';
import { probePage, type ProbeName } from './probe-page.ts';

function checksOf(...results: readonly (readonly [name: string, ok: boolean, detail?: string])[]): Checks {
  const checks = new Checks();
  for (const [name, ok, detail] of results) {
    checks.add({ name, check: () => (detail === undefined ? { ok } : { ok, detail }) });
  }
  return checks;
}

const fine = checksOf(['ping', true], ['lease a', true, 'leading']);
const degraded = checksOf(['ping', true]);
degraded.add({ name: 'work', check: () => ({ ok: true, isDegraded: true, detail: 'machine-controller held' }) });
const bad = checksOf(['ping', true], ['caches', false, 'not synced: Node'], ['work', false]);

describe('a probe', () => {
  const rows: readonly {
    what: string;
    probe?: ProbeName;
    checks: Checks;
    only?: string;
    query?: string;
    status: number;
    body: string;
  }[] = [
    { what: 'that passes', checks: fine, status: 200, body: 'ok' },
    { what: "that passes, by the original's name", probe: 'healthz', checks: fine, status: 200, body: 'OK' },
    {
      what: 'that lists what passes',
      probe: 'livez',
      checks: fine,
      query: 'verbose',
      status: 200,
      body: '[+] ping ok\n[+] lease a ok: leading\nlivez check passed\n',
    },
    {
      what: 'that passes marks what needs attention',
      checks: degraded,
      query: 'verbose',
      status: 200,
      body: '[+] ping ok\n[!] work degraded: machine-controller held\nreadyz check passed\n',
    },
    {
      what: 'that fails lists all',
      checks: bad,
      status: 503,
      body: '[+] ping ok\n[-] caches failed: not synced: Node\n[-] work failed\nreadyz check failed\n',
    },
    { what: 'without what fails', checks: bad, query: 'exclude=caches&exclude=work', status: 200, body: 'ok' },
    {
      what: 'without a part of what fails',
      checks: bad,
      query: 'exclude=caches',
      status: 503,
      body: '[+] ping ok\n[+] caches excluded: failed: not synced: Node\n[-] work failed\nreadyz check failed\n',
    },
    {
      what: 'that excludes what there is not says so',
      checks: fine,
      query: 'verbose=1&exclude=a%0Ab&exclude=c',
      status: 200,
      body: '[+] ping ok\n[+] lease a ok: leading\nwarn: some health checks cannot be excluded: no matches for "a\\nb","c"\nreadyz check passed\n',
    },
    {
      what: 'that excludes what nobody could read',
      checks: fine,
      query: `verbose=1&exclude=${'x'.repeat(10_000)}`,
      status: 200,
      body: `[+] ping ok\n[+] lease a ok: leading\nwarn: some health checks cannot be excluded: no matches for "${'x'.repeat(199)}\nreadyz check passed\n`,
    },
    {
      what: 'that fails and excludes what there is not',
      checks: bad,
      query: 'exclude=caches&exclude=wrok',
      status: 503,
      body: '[+] ping ok\n[+] caches excluded: failed: not synced: Node\n[-] work failed\nwarn: some health checks cannot be excluded: no matches for "wrok"\nreadyz check failed\n',
    },
    { what: 'of one check', checks: bad, only: 'ping', status: 200, body: 'ok' },
    {
      what: 'of one check that fails',
      checks: bad,
      only: 'work',
      status: 503,
      body: '[-] work failed\nreadyz check failed\n',
    },
    { what: 'of a check that there is not', checks: fine, only: 'other', status: 404, body: 'no such check\n' },
    { what: 'without any checks', checks: new Checks(), status: 200, body: 'ok' },
  ];
  test.each(rows)('$what is answered with $status', ({ probe = 'readyz', checks, only, query, status, body }) => {
    expect(probePage(probe, checks, { only, query: new URLSearchParams(query) })).toEqual({ status, body });
  });
});

import { describe, expect, test } from '@jest/globals';

import { simulatedServer } from '../requests/simulated.ts';
import type { APIAnswer, SimulatedAPIServer } from './api-server.ts';
import { at } from './json.ts';
import type { WatchEvent } from './watch.ts';

const PATH = '/apis/machine.sapcloud.io/v1alpha1/namespaces/ns/machines';
const machine = (name: string, metadata: object = {}) => ({
  apiVersion: 'machine.sapcloud.io/v1alpha1',
  kind: 'Machine',
  metadata: { name, ...metadata },
  spec: { class: { kind: 'MachineClass', name: 'c' } },
});

function create(server: SimulatedAPIServer, name: string, metadata: object = {}): void {
  expect(server.handle({ method: 'POST', path: PATH, body: machine(name, metadata) })).toMatchObject({ code: 201 });
}

function bodyOf(answer: APIAnswer): unknown {
  if ('watch' in answer) throw new Error('a watch');
  return answer.body;
}

/** The events of a watch from now on, as texts. */
function watched(server: SimulatedAPIServer, query: string): string[] {
  const answer = server.handle({ method: 'GET', path: `${PATH}?watch=true${query}` });
  if (!('watch' in answer)) throw new Error(JSON.stringify(answer));
  const shown: string[] = [];
  const nameIn = ({ object }: WatchEvent): unknown => at(object, ['metadata', 'name']) ?? at(object, ['code']) ?? '-';
  answer.watch.follow((event) => shown.push(`${event.type} ${String(nameIn(event))}`));
  return shown;
}

// What a real API server answers too is compared by test/integration/simulated-api-server.test.ts.
describe('the simulated API server', () => {
  test('shows a watch by labels what comes to be selected, and what ceases to be', () => {
    const server = simulatedServer('ns');
    create(server, 'a', { labels: { in: 'yes' } });
    const shown = watched(server, '&labelSelector=in%3Dyes');
    const patch = (labels: object): void => {
      const contentType = 'application/merge-patch+json';
      server.handle({ method: 'PATCH', path: `${PATH}/a`, body: { metadata: { labels } }, contentType });
    };

    patch({ in: 'no' });
    patch({ in: 'no', other: 'x' });
    patch({ in: 'yes' });
    patch({ other: 'y' });
    server.handle({ method: 'DELETE', path: `${PATH}/a` });

    expect(shown).toEqual(['ADDED a', 'DELETED a', 'ADDED a', 'MODIFIED a', 'DELETED a']);
  });

  test('answers what may be old as it was when its cache was as far, and everything else as it is', () => {
    const server = simulatedServer('ns');
    create(server, 'a');
    const cachedAt = server.objects.revisions.current;
    server.handle({ method: 'DELETE', path: `${PATH}/a` });
    create(server, 'b');
    const { current } = server.objects.revisions;
    const listed = (query: string): unknown => {
      const body = bodyOf(server.handle({ method: 'GET', path: `${PATH}${query}`, cachedAt }));
      const items = at(body, ['items']) as readonly { readonly metadata: { readonly name: string } }[] | undefined;
      return items === undefined
        ? at(body, ['reason'])
        : [at(body, ['metadata', 'resourceVersion']), ...items.map(({ metadata }) => metadata.name)];
    };

    expect(listed('?resourceVersion=0')).toEqual([String(cachedAt), 'a']);
    expect(listed(`?resourceVersion=${cachedAt}`)).toEqual([String(cachedAt), 'a']);
    expect(listed(`?resourceVersion=${current}`)).toBe('Timeout');
    expect(listed('')).toEqual([String(current), 'b']);
    expect(listed(`?resourceVersion=${current}&resourceVersionMatch=Exact`)).toEqual([String(current), 'b']);
    expect(server.handle({ method: 'GET', path: `${PATH}/a?resourceVersion=0`, cachedAt })).toMatchObject({
      code: 200,
    });
    expect(server.handle({ method: 'GET', path: `${PATH}/a`, cachedAt })).toMatchObject({ code: 404 });
  });

  test('a watch that begins with what there is ends that with a bookmark', () => {
    const server = simulatedServer('ns');
    create(server, 'a');

    const shown = watched(server, '&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan');
    create(server, 'b');

    expect(shown).toEqual(['ADDED a', 'BOOKMARK -', 'ADDED b']);
  });

  test('what is forgotten can neither be listed nor watched, nor listed on', () => {
    const server = simulatedServer('ns');
    for (const name of ['a', 'b', 'c']) create(server, name);
    const first = bodyOf(server.handle({ method: 'GET', path: `${PATH}?limit=1` }));
    const rv = String(at(first, ['metadata', 'resourceVersion']));
    create(server, 'd');
    server.objects.compact();

    const token = String(at(first, ['metadata', 'continue']));
    const next = bodyOf(server.handle({ method: 'GET', path: `${PATH}?limit=1&continue=${token}` }));
    const exact = server.handle({ method: 'GET', path: `${PATH}?resourceVersion=${rv}&resourceVersionMatch=Exact` });

    expect(next).toMatchObject({ code: 410, reason: 'Expired' });
    expect(exact).toMatchObject({ code: 410 });
    expect(watched(server, `&resourceVersion=${rv}`)).toEqual(['ERROR 410']);
    const inconsistent = String(at(next, ['metadata', 'continue']));
    const rest = bodyOf(server.handle({ method: 'GET', path: `${PATH}?continue=${inconsistent}` }));
    expect(at(rest, ['items'])).toHaveLength(3);
  });

  const apply = (body: unknown, query = '') => ({
    method: 'PATCH',
    path: `${PATH}/a?fieldManager=test${query}`,
    body,
    contentType: 'application/apply-patch+yaml',
  });
  const asked = machine('a');

  test.each([
    { what: 'an apply of YAML', request: apply(undefined) },
    {
      what: 'an apply that takes a value from somebody else',
      request: apply({ ...asked, spec: { class: { kind: 'MachineClass', name: 'other' } } }),
    },
    { what: 'an apply of what is not defined', request: apply({ ...asked, spec: { ...asked.spec, more: 1 } }) },
    {
      what: 'an apply of a list whose entries have keys',
      request: apply({ ...asked, status: { machineConditions: [{ type: 'Drained', status: 'True' }] } }),
    },
  ])('says of $what that it does not know it', ({ request }) => {
    const server = simulatedServer('ns');
    create(server, 'a');

    expect(server.handle(request)).toMatchObject({ code: 501 });
  });

  test('remembers of an object that is gone nothing that was applied', () => {
    const server = simulatedServer('ns');
    const labelled = (labels: object): object => ({ ...asked, metadata: { name: 'a', labels } });
    server.handle(apply(labelled({ one: 'x' })));
    server.handle({ method: 'DELETE', path: `${PATH}/a` });
    create(server, 'a', { labels: { one: 'x' } });

    const answer = bodyOf(server.handle(apply(labelled({ two: 'y' }))));

    expect(at(answer, ['metadata', 'labels'])).toEqual({ one: 'x', two: 'y' });
  });
});

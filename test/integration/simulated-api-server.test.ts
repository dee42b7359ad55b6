import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Agent, request } from 'undici';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { namespace, privateControlPlane, type TestNamespace } from '../env/environment.ts';
import type { APIRequest } from '../simulation/api-server/api-server.ts';
import { at } from '../simulation/api-server/json.ts';
import { ROWS } from '../simulation/requests/all.ts';
import { type Answer, Asked, shownIn } from '../simulation/requests/compare.ts';
import { answersOf, simulatedServer } from '../simulation/requests/simulated.ts';

/** Only what the table needs: any other would write to its objects when it likes, as the one of TTLs does to new Nodes. */
const CONTROLLERS = ['garbage-collector-controller', 'serviceaccount-controller'];

let plane: ControlPlane;
let own: TestNamespace;
let agent: Agent;
let real: Asked;
let simulated: Asked;
/** Both servers, with the resourceVersion before the first request. */
let watched: readonly {
  readonly asked: Asked;
  readonly answer: (request: APIRequest) => Promise<Answer>;
  readonly from: string;
}[];

beforeAll(async () => {
  plane = await privateControlPlane({ controllers: CONTROLLERS });
  const api = plane.connection.api();
  for (const folder of ['ironcore', 'mirantis', 'cluster-api']) {
    await applyManifests(api, readManifests(join(import.meta.dirname, '../../crds', folder)));
  }
  await api.close();
  own = await namespace(plane.connection);
  agent = new Agent({ connect: { ca: plane.connection.ca } });
  const where = { namespace: own.name, prefix: `sim-${randomBytes(3).toString('hex')}-` };
  real = new Asked(where, answerOf);
  const answersOfSimulated = answersOf(simulatedServer(own.name));
  simulated = new Asked(where, answersOfSimulated);
  watched = [
    { asked: real, answer: answerOf, from: await revisionAt(answerOf) },
    { asked: simulated, answer: answersOfSimulated, from: await revisionAt(answersOfSimulated) },
  ];
});

afterAll(async () => {
  await own[Symbol.asyncDispose]();
  await agent.destroy();
  await plane.stop();
});

async function answerOf({ method, path, body, contentType, accept }: APIRequest): Promise<Answer> {
  const { statusCode, body: stream } = await request(new URL(path, plane.connection.url), {
    dispatcher: agent,
    method: method as 'GET',
    headers: {
      authorization: `Bearer ${plane.connection.adminToken}`,
      accept: accept ?? 'application/json',
      ...(body !== undefined && { 'content-type': contentType ?? 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await stream.text();
  try {
    const isWatch = path.includes('watch=true');
    const lines = isWatch ? text.split('\n').filter((line) => line !== '') : [];
    return { code: statusCode, body: isWatch ? lines.map((line) => JSON.parse(line) as unknown) : JSON.parse(text) };
  } catch {
    return { code: statusCode, body: text };
  }
}

async function revisionAt(answer: (request: APIRequest) => Promise<Answer>): Promise<string> {
  const { body } = await answer({ method: 'GET', path: collection('machines') });
  return String(at(body, ['metadata', 'resourceVersion']));
}

function collection(plural: string): string {
  return `/apis/machine.sapcloud.io/v1alpha1/namespaces/${own.name}/${plural}`;
}

/** Of these the garbage collector has its part, too. */
const COLLECTED = ['two', 'orphaner'];

describe('the simulated API server answers as kube-apiserver does', () => {
  test.each(ROWS.map((row, i) => ({ title: `${i}: ${row.title}`, row })))('$title', async ({ row }) => {
    const expected = await real.ask(row);

    const answer = await simulated.ask(row);

    expect(answer).toEqual('body' in expected && real.isBuiltIn(row) ? shownIn(expected, answer) : expected);
  });

  test.each(['machines', 'machinesets', 'machinedeployments', 'machineclasses', 'nodelabelpolicies'])(
    'a watch of %s shows what has happened',
    async (plural) => {
      const [expected, shown] = await Promise.all(
        watched.map(async ({ asked, answer, from }) => {
          const path = `${collection(plural)}?watch=true&resourceVersion=${from}&timeoutSeconds=1`;
          const events = (await answer({ method: 'GET', path })).body as { object: unknown }[];
          return events
            .filter(({ object }) => !COLLECTED.includes(String(at(object, ['metadata', 'name']))))
            .map((event) => withoutRevision(asked.normalised(event)));
        }),
      );

      expect(shown).not.toHaveLength(0);
      expect(shown).toEqual(expected);
    },
  );
});

/** Which resourceVersion an event of a deletion has is told by no answer before it. */
function withoutRevision(event: unknown): unknown {
  const { type, object } = event as { type: string; object: { metadata: object } };
  if (type !== 'DELETED') return event;
  return { type, object: { ...object, metadata: { ...object.metadata, resourceVersion: 'any' } } };
}

import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { GateClosedError } from '../kube/gate/gate.ts';
import { ApiError } from '../kube/client/errors.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import { silentLogger, type LogFields } from '../base/log/logger.ts';
import { answering, errorFor, authenticationErrorOf, whyUnavailable, namesOf } from './answer.ts';
import { CloudProviderDefinition } from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { RpcName } from './grpc-server.ts';
import { autoscalerMetrics } from './metrics.ts';
import { ServerError, Status } from 'nice-grpc';
import type { Rpcs } from './rpcs.ts';
import { RunningChanges } from './running-changes.ts';

const LEASE = 'ns/machine-controller-manager';
const METHODS = Object.keys(CloudProviderDefinition.methods) as RpcName[];

describe('whether calls are answered', () => {
  const outage = { cluster: 'target', sinceMs: 0, why: 'connect ECONNREFUSED' };

  test.each([
    { what: 'leads', works: true, trustedForMs: 1, outages: [], want: undefined },
    {
      what: 'has not begun to lead',
      works: false,
      trustedForMs: 1,
      outages: [outage],
      want: { isElsewhere: true, reason: expect.stringContaining(`does not hold Lease ${LEASE}`) },
    },
    {
      what: 'may have lost its Lease',
      works: true,
      trustedForMs: 0,
      outages: [],
      want: { isElsewhere: true, reason: expect.stringContaining(`does not hold Lease ${LEASE}`) },
    },
    {
      what: 'leads in an outage',
      works: true,
      trustedForMs: 1,
      outages: [outage],
      want: { isElsewhere: false, reason: expect.stringContaining('API server of cluster "target" unreachable') },
    },
  ])('a process that $what', ({ works, trustedForMs, outages, want }) => {
    expect(whyUnavailable({ lease: LEASE, works, trustedForMs, outages, held: [] })).toEqual(want);
  });
});

describe('what a client is told of an error', () => {
  const { signal } = new AbortController();

  test.each([
    {
      what: 'its own words',
      err: new ServerError(Status.FAILED_PRECONDITION, 'at its maximum'),
      want: { code: Status.FAILED_PRECONDITION, details: 'at its maximum' },
    },
    {
      what: 'that the gate was closed',
      err: new GateClosedError('fenced', undefined, 'leadership may have been lost'),
      want: { code: Status.UNAVAILABLE, details: 'nothing was changed: leadership may have been lost' },
    },
    {
      what: 'what an API server refused, and the remedy',
      err: new ApiError(403, 'Forbidden', 'may not'),
      want: {
        code: Status.UNAVAILABLE,
        details: 'the API server did not apply the change: may not; apply deploy/rbac/control.yaml',
      },
    },
    {
      what: 'what a webhook refused, which no permission helps against',
      err: new ApiError(403, 'Forbidden', 'admission webhook "w" denied the request: no'),
      want: {
        code: Status.UNAVAILABLE,
        details: 'the API server did not apply the change: admission webhook "w" denied the request: no',
      },
    },
    { what: 'a fault', err: new TypeError('no size'), want: { code: Status.INTERNAL, details: 'no size' } },
  ])('$what', ({ err, want }) => {
    expect(errorFor(err, signal, 'deploy/rbac/control.yaml')).toMatchObject(want);
  });

  test('that its time was over', () => {
    expect(errorFor(new Error('aborted'), AbortSignal.abort(), '')).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  });
});

describe('in an outage', () => {
  const codeOf = async (method: RpcName, isElsewhere: boolean, reply: object = {}) => {
    const answer = answering({
      rpcs: Object.fromEntries(METHODS.map((one) => [one, () => reply])) as unknown as Rpcs,
      clientNames: undefined,
      unavailable: () => ({ reason: 'no API server', isElsewhere }),
      drop: () => undefined,
      roleFile: 'deploy/rbac/control.yaml',
      metrics: autoscalerMetrics(createRegistry(), () => []),
      clock: new FakeClock(),
      log: silentLogger,
    });
    const { signal } = new AbortController();
    const call = { address: '10.0.0.1:1', certificate: undefined, signal, leftMs: () => Infinity };
    const outcome = await answer(method, {}, call);
    return 'code' in outcome ? outcome.code : Status.OK;
  };

  test.each(METHODS)('%s is answered if an error would be taken for an answer', async (method) => {
    const isAnswered = ['nodeGroups', 'nodeGroupForNode', 'gPULabel', 'getAvailableGPUTypes', 'cleanup'].includes(
      method,
    );

    expect(await codeOf(method, false)).toBe(isAnswered ? Status.OK : Status.UNAVAILABLE);
    expect(await codeOf(method, true)).toBe(Status.UNAVAILABLE);
  });

  test('that a Node is in no group is not answered: its Machine may be one that is known when the Nodes are read', async () => {
    expect(await codeOf('nodeGroupForNode', false, { nodeGroup: { id: '' } })).toBe(Status.UNAVAILABLE);
    expect(await codeOf('nodeGroupForNode', false, { nodeGroup: { id: 'pool' } })).toBe(Status.OK);
  });
});

describe('who may call', () => {
  const certificate = (subject: object, subjectaltname?: string) => ({ subject, subjectaltname }) as never;

  test.each([
    { what: 'the common name', of: certificate({ CN: 'ca' }), code: undefined },
    { what: 'a DNS name', of: certificate({ CN: 'x' }, 'DNS:a.b, DNS:ca'), code: undefined },
    { what: 'a URI', of: certificate({}, 'URI:spiffe://a/ca, DNS:x'), code: undefined },
    {
      what: 'another name',
      of: certificate({ CN: 'ca2' }, 'DNS:ca3, IP Address:10.0.0.1'),
      code: Status.PERMISSION_DENIED,
    },
    { what: 'no name', of: certificate({}), code: Status.PERMISSION_DENIED },
    { what: 'no certificate', of: undefined, code: Status.UNAUTHENTICATED },
  ])('a client that shows $what: code $code', ({ of, code }) => {
    expect(authenticationErrorOf({ certificate: of }, ['ca', 'spiffe://a/ca'])?.code).toBe(code);
  });

  test('anybody, where the address protects', () => {
    expect(authenticationErrorOf({ certificate: undefined }, undefined)).toBeUndefined();
  });

  test('names are not found inside of quoted ones', () => {
    expect(namesOf(certificate({}, 'DNS:"a, DNS:ca", DNS:b'))).toEqual(['a, DNS:ca', 'b']);
  });
});

describe('the log', () => {
  const lineOf = async (clientNames: readonly string[] | undefined, method: 'refresh' | 'nodeGroupIncreaseSize') => {
    const lines: LogFields[] = [];
    const note = (level: string) => (fields: LogFields, message: string) =>
      void lines.push({ level, message, ...fields });
    const clock = new FakeClock();
    const answer = answering({
      rpcs: { refresh: () => ({}), nodeGroupIncreaseSize: () => ({}) } as unknown as Rpcs,
      clientNames,
      unavailable: () => undefined,
      drop: () => undefined,
      roleFile: 'deploy/rbac/control.yaml',
      metrics: autoscalerMetrics(createRegistry(), () => []),
      clock,
      log: { ...silentLogger, debug: note('debug'), info: note('info'), warn: note('warn') },
    });
    const { signal } = new AbortController();
    const call = { address: '10.0.0.1:1', certificate: undefined, signal, leftMs: () => Infinity };
    await answer(method, { id: 'pool', delta: 1 }, call);
    return lines;
  };

  test.each([
    { method: 'refresh', level: 'debug', message: 'answered an autoscaler call' },
    { method: 'nodeGroupIncreaseSize', level: 'info', message: 'completed an autoscaler call' },
  ] as const)('has a line of level $level for $method', async ({ method, level, message }) => {
    expect(await lineOf(undefined, method)).toEqual([
      expect.objectContaining({ level, message, method, peer: '10.0.0.1:1', group: 'pool', code: 'OK' }),
    ]);
  });

  test('says of one who may not call who it was, and nothing that they have sent', async () => {
    const [line = {}, ...more] = await lineOf(['cluster-autoscaler'], 'nodeGroupIncreaseSize');

    expect(line).toMatchObject({ level: 'warn', peer: '10.0.0.1:1', code: 'UNAUTHENTICATED' });
    expect(Object.keys(line)).not.toContain('group');
    expect(more).toEqual([]);
  });
});

test('changes that run are waited for, and none begins any more', async () => {
  const changes = new RunningChanges();
  const done = Promise.withResolvers<void>();
  const order: string[] = [];

  const running = changes.run(() => done.promise).then(() => order.push('changed'));
  const closed = changes.close().then(() => order.push('closed'));
  await expect(changes.run(() => done.promise)).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  done.resolve();
  await Promise.all([running, closed]);

  expect(order).toEqual(['changed', 'closed']);
});

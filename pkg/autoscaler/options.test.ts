import { describe, expect, test } from '@jest/globals';

import { machineDeployment } from '../../test/builders.ts';
import { wireMessage } from '../../test/fakes/wire-message.ts';
import { NodeGroupAutoscalingOptions } from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { optionsReply, ownOptions, provisionMsOf } from './options.ts';

const PREFIX = 'autoscaler.gardener.cloud/';
const own = (annotations: Record<string, string>) =>
  ownOptions(
    machineDeployment((d) => {
      d.metadata.annotations = Object.fromEntries(
        Object.entries(annotations).map(([key, v]) => [`${PREFIX}${key}`, v]),
      );
    }),
  );
const options = (fields: Partial<NodeGroupAutoscalingOptions>) => wireMessage(NodeGroupAutoscalingOptions, fields);
const seconds = (n: number) => ({ seconds: BigInt(n), nanos: 0 });
const ns = (n: number) => ({ nanoseconds: BigInt(n) * 1_000_000_000n });

/** What clients say from 1.34.2 on. */
const PLAIN = options({
  scaleDownUtilizationThreshold: 0.5,
  scaleDownGpuUtilizationThreshold: 0.6,
  ignoreDaemonSetsUtilization: true,
  zeroOrMaxNodeScaling: true,
  scaleDownUnneeded: seconds(600),
  scaleDownUnready: seconds(1200),
  maxNodeProvision: seconds(900),
  maxNodeStartup: seconds(930),
});
/** What they say until then. */
const EMBEDDED = options({
  scaleDownUtilizationThreshold: 0.5,
  embeddedScaleDownUnneeded: ns(600),
  embeddedScaleDownUnready: ns(1200),
  embeddedMaxNodeProvision: ns(900),
});

describe('options of a node group', () => {
  test('are its annotations over all defaults, for clients of either era', () => {
    const settings = own({ 'scale-down-utilization-threshold': '0.7', 'scale-down-unneeded-time': '1m30.5s' });

    expect(optionsReply(settings, PLAIN)).toEqual({
      ...PLAIN,
      scaleDownUtilizationThreshold: 0.7,
      scaleDownUnneeded: { seconds: 90n, nanos: 500_000_000 },
      embeddedScaleDownUnneeded: { nanoseconds: 90_500_000_000n },
      embeddedScaleDownUnready: ns(1200),
      embeddedMaxNodeProvision: ns(900),
    });
    expect(optionsReply(settings, EMBEDDED)).toEqual({
      ...EMBEDDED,
      scaleDownUtilizationThreshold: 0.7,
      embeddedScaleDownUnneeded: { nanoseconds: 90_500_000_000n },
      scaleDownUnneeded: { seconds: 90n, nanos: 500_000_000 },
      scaleDownUnready: seconds(1200),
      maxNodeProvision: seconds(900),
    });
  });

  test('say how long the client waits for a Node, also in groups without settings', () => {
    expect(provisionMsOf(own({ 'max-node-provision-time': '90s' }), PLAIN)).toBe(90_000);
    expect(provisionMsOf(own({}), PLAIN)).toBe(900_000);
    expect(provisionMsOf(own({}), EMBEDDED)).toBe(900_000);
    expect(provisionMsOf(own({}), options({}))).toBeUndefined();
    expect(provisionMsOf(own({}), undefined)).toBeUndefined();
  });

  test('are left to the client when there are none, or it has not said its defaults', () => {
    expect(optionsReply(own({}), PLAIN)).toBeUndefined();
    expect(optionsReply(own({ 'scale-down-unneeded-time': '1m' }), undefined)).toBeUndefined();
    expect(optionsReply(own({ 'scale-down-unneeded-time': '1m' }), options({}))).toBeUndefined();
  });

  test.each([
    { key: 'scale-down-utilization-threshold', value: '70%' },
    { key: 'scale-down-gpu-utilization-threshold', value: '1.5' },
    { key: 'scale-down-unneeded-time', value: '10' },
    { key: 'scale-down-unready-time', value: '-1m' },
    { key: 'max-node-provision-time', value: '' },
  ])('a bad value of $key is told and not obeyed: $value', ({ key, value }) => {
    const settings = own({ [key]: value });

    expect(settings.faults).toEqual([
      expect.stringContaining(`annotation ${PREFIX}${key}: ${JSON.stringify(value)} is not valid`),
    ]);
    expect(optionsReply(settings, PLAIN)).toBeUndefined();
  });

  test('have the field numbers of both eras, byte by byte', () => {
    const settings = own({
      'scale-down-utilization-threshold': '0.5',
      'scale-down-gpu-utilization-threshold': '0.5',
      'scale-down-unneeded-time': '1s',
      'scale-down-unready-time': '2s',
      'max-node-provision-time': '3s',
    });

    const bytes = NodeGroupAutoscalingOptions.encode(
      optionsReply(settings, { ...PLAIN, maxNodeStartup: seconds(4), allowNonAtomicScaleUpToMax: true }) ?? options({}),
    ).finish();

    expect(
      Buffer.from(bytes)
        .toString('hex')
        .match(/.{1,2}/g)
        ?.join(' '),
    ).toBe(
      [
        '09 00 00 00 00 00 00 e0 3f', // 1: double 0.5
        '11 00 00 00 00 00 00 e0 3f', // 2: double 0.5
        '1a 06 08 80 94 eb dc 03', // 3: metav1.Duration 1 s
        '22 06 08 80 a8 d6 b9 07', // 4: metav1.Duration 2 s
        '2a 06 08 80 bc c1 96 0b', // 5: metav1.Duration 3 s
        '30 01', // 6: true
        '38 01', // 7: true
        '42 02 08 01', // 8: google.protobuf.Duration 1 s
        '4a 02 08 02', // 9: 2 s
        '52 02 08 03', // 10: 3 s
        '5a 02 08 04', // 11: 4 s
        '60 01', // 12: true
      ].join(' '),
    );
  });
});

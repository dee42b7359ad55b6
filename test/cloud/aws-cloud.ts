import { Ec2, NODES, REGION } from './ec2.ts';
import { Ec2Gate } from './ec2-gate.ts';
import type { ProviderCloud } from './provider-fleet.ts';

/** What the provider accepts as credentials. */
export const KEYS = { providerAccessKeyId: 'AKIAEXAMPLE', providerSecretAccessKey: 'very-secret-access-key' };

/** EC2 for the provider for AWS; requests of its programs come through a gate. */
export class AwsCloud implements ProviderCloud, AsyncDisposable {
  readonly name = 'aws';
  readonly provider = 'AWS';
  readonly types = { small: 't3.small', large: 't3.large' } as const;
  readonly ec2: Ec2;
  readonly gate: Ec2Gate;
  readonly #stack: AsyncDisposableStack;

  private constructor(ec2: Ec2, gate: Ec2Gate, stack: AsyncDisposableStack) {
    this.ec2 = ec2;
    this.gate = gate;
    this.#stack = stack;
  }

  static async start(): Promise<AwsCloud> {
    await using starting = new AsyncDisposableStack();
    const ec2 = starting.use(await Ec2.start());
    const gate = starting.use(await Ec2Gate.start(ec2.url));
    return new AwsCloud(ec2, gate, starting.move());
  }

  get env() {
    return { AWS_ENDPOINT_URL_EC2: this.gate.url };
  }

  /** Of instances that forward packets of pods: that is set once they exist, by InitializeMachine. */
  async spec(size: 'small' | 'large', cluster: string) {
    const [ami, subnet, group] = await Promise.all([
      this.ec2.first('DescribeImages', 'imageId'),
      this.ec2.first('DescribeSubnets', 'subnetId'),
      this.ec2.first('DescribeSecurityGroups', 'groupId'),
    ]);
    return {
      ami,
      region: REGION,
      machineType: this.types[size],
      iam: { name: NODES },
      keyName: NODES,
      blockDevices: [{ ebs: { volumeSize: 20, volumeType: 'gp2' } }],
      networkInterfaces: [{ subnetID: subnet, securityGroupIDs: [group] }],
      srcAndDstChecksEnabled: false,
      tags: tagsOf(cluster),
    };
  }

  async vms() {
    return await this.ec2.instances();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

/** Tags of the instances of a cluster. */
export function tagsOf(cluster: string): Readonly<Record<string, string>> {
  return { [`kubernetes.io/cluster/${cluster}`]: '1', 'kubernetes.io/role/node': '1' };
}

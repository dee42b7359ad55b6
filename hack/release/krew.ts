import { stringify } from 'yaml';

export interface KrewRelease {
  readonly version: string;
  /** Where the package of npm can be downloaded. */
  readonly uri: string;
  /** Of that package, in hex. */
  readonly sha256: string;
  readonly description: string;
}

/** The plugin of kubectl as krew installs it, from the package of npm. */
export function krewManifest({ version, uri, sha256, description }: KrewRelease): string {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'machinist' },
    spec: {
      version: `v${version}`,
      shortDescription: 'Explain machines, and manage their rollouts',
      description,
      caveats: 'This plugin needs Node 22.19 or newer.\n',
      platforms: [
        {
          selector: { matchExpressions: [{ key: 'os', operator: 'In', values: ['darwin', 'linux'] }] },
          uri,
          sha256,
          files: [{ from: 'package/*', to: '.' }],
          bin: 'bin/machinist.cjs',
        },
      ],
    },
  });
}

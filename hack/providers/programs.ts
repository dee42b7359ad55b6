/** Where tests by name find the drivers of real providers and the simulators of their clouds: `name=file`, separated by commas. */
export const PROVIDERS_VARIABLE = 'MACHINIST_MCM_PROVIDERS';
/** The Python with moto. */
export const MOTO_VARIABLE = 'MACHINIST_MOTO';
/** Of moto, which plays EC2. */
export const MOTO_VERSION = '5.1.18';

/** The program of a provider's driver; undefined when this run has none. */
export function providerProgram(name: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const pairs = (env[PROVIDERS_VARIABLE] ?? '').split(',').map((pair) => pair.split('='));
  return pairs.find(([one]) => one === name)?.[1];
}

import { FlagError } from './flag-error.ts';

/** Where somebody is reached, as a flag says it. */
export interface NamedAddress {
  readonly name: string;
  readonly address: string;
}

/** Reads `<name>=<address>`; `placeholder` is what the name is of, and `noun` what has one address. Throws FlagError. */
export function addressesFrom(flag: string, placeholder: string, items: readonly string[]): readonly NamedAddress[] {
  return items.map((item) => {
    const [, name, address] = /^([^=]+)=((?:unix|dns):\/\/\/.+)$/.exec(item) ?? [];
    if (name === undefined || address === undefined) {
      throw new FlagError(
        `--${flag}: ${JSON.stringify(item)} is not valid: expected <${placeholder}>=<address>, where the address begins with unix:/// or dns:///`,
      );
    }
    return { name, address };
  });
}

/** Throws FlagError for two of one name. */
export function refuseTwice(flag: string, noun: string, all: readonly NamedAddress[]): void {
  const twice = all.find((one, i) => all.findIndex((other) => other.name === one.name) < i);
  if (twice === undefined) return;
  throw new FlagError(
    `--${flag}: ${noun} ${JSON.stringify(twice.name)} is listed twice; give each ${noun} one address`,
  );
}

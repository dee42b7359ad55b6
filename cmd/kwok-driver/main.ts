import { runKwokDriver } from './kwok-driver.ts';

await runKwokDriver(process.argv.slice(2));

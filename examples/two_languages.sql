-- A memory in two languages, English and Chinese, short and long: to try search with.
--
--   syncer init memory.db
--   sqlite3 memory.db < two_languages.sql
--   syncer once -c two_languages.toml
--   syncer search -c two_languages.toml --mode sparse 协程

INSERT INTO memory_events (agent, scope, source, content) VALUES
    ('coder', 'project', 'review', 'The nightly build failed because the certificate of the artifact store had expired. Renewing it took four minutes; noticing it took six hours.'),
    ('coder', 'project', 'chat', 'Rate limiting lives in the gateway, not in the services. Each tenant gets a bucket of 200 requests that refills at 20 a second.'),
    ('coder', 'project', 'chat', 'We use feature flags for anything that touches billing, and remove a flag two weeks after it is fully on.'),
    ('coder', 'project', 'review', 'Never log the request body in the payment service: card numbers ended up in the log archive in March.'),
    ('coder', 'project', 'notes', 'The importer reads the whole spreadsheet into memory. Files above 40 MB must be split before they are uploaded.'),
    ('coder', 'project', 'notes', 'Postgres autovacuum cannot keep up with the events table; partitions by week made it manageable.'),
    ('coder', 'project', 'incident', 'On the second of April the search page answered with errors for eleven minutes. A deployment had raised the number of workers from eight to thirty-two, and each worker opened its own pool of ten connections, so the database refused the rest.

What helped: we put a connection pooler in front of the database and limited it to one hundred connections. Workers now wait for a connection instead of failing.

What we changed: a deployment that alters the number of workers needs a second pair of eyes, and the dashboard shows used connections next to the limit. The alert fires at eighty percent.

What we left alone: the size of the pool in each worker. With the pooler in between it no longer matters, and changing two things at once would have hidden which of them worked.'),
    ('planner', 'team', 'meeting', 'Stand-up moves to a quarter past nine, since the school run makes nine o''clock impossible for two of us.'),
    ('planner', 'team', 'meeting', 'Marta owns the release on Thursdays; when she is away, Idris does it and writes down what was unclear.'),
    ('planner', 'team', 'meeting', 'Design reviews are booked for an hour but end when there are no questions left. The last three took twenty minutes.'),
    ('planner', 'team', 'notes', 'New colleagues get a paired first week: every change they make goes out under two names.'),
    ('planner', 'team', 'notes', 'The retrospective found that we start too many things. No more than two open tasks for each person until summer.'),
    ('planner', 'user', 'chat', 'She prefers short answers with the reason first and the details after, and no exclamation marks.'),
    ('planner', 'user', 'chat', 'He is allergic to hazelnuts; check the menu before a restaurant is booked.'),
    ('planner', 'user', 'chat', 'Her flight to Lisbon leaves at six in the morning, so the taxi has to come at half past three.'),
    ('planner', 'user', 'chat', 'Remind him every first Monday to water the lemon tree on the balcony.'),
    ('librarian', 'global', 'reading', 'The paper on learned sparse retrieval shows that exact words still matter for names, codes and numbers, where meaning alone goes astray.'),
    ('librarian', 'global', 'reading', 'Spaced repetition works because remembering is what strengthens a memory, not reading it again.'),
    ('librarian', 'global', 'reading', 'A lighthouse keeper''s log from 1874 describes how the lamp was tended through a storm of three nights. He wrote down the hour of each trimming of the wick, the level of the oil and the direction of the wind, and on the third morning a single sentence about the ship that had found the channel.

The historian who published it argues that such logs are the first operational records we have: they say what was done, when, and by whom, and leave out what the writer felt. That makes them dull to read and easy to trust.

She compares them with the letters the same man sent home, in which the storm lasts a week and the ship is nearly lost. Both were written by an honest person; only one was written for whoever would have the next watch.'),
    ('librarian', 'global', 'reading', 'Bees tell each other the direction of food by the angle of a dance, measured against the sun.'),
    ('librarian', 'global', 'recipe', 'Bread for tomorrow: mix flour, water, salt and a spoon of starter in the evening, fold it twice, bake at 240 degrees in a closed pot.'),
    ('librarian', 'global', 'recipe', 'A pinch of baking soda in the water keeps green beans green.'),
    ('coder', 'project', 'notes', 'Error E4517 means that the scanner''s firmware is older than 2.9 and cannot read the new labels.'),
    ('coder', 'project', 'notes', 'The staging cluster is switched off at eight in the evening; write to the channel if you need it longer.'),
    ('coder', 'project', 'chat', '支付服务的超时时间改成三秒，超过就重试一次，再失败就转人工处理。'),
    ('coder', 'project', 'chat', '日志里不能出现用户的手机号，上线前要用脱敏工具检查一遍。'),
    ('coder', 'project', 'review', '缓存雪崩的原因是所有键在同一时刻过期，现在过期时间加了随机偏移。'),
    ('coder', 'project', 'notes', '数据库迁移要先在影子库上跑一遍，确认没有锁表再排到夜间窗口。'),
    ('coder', 'project', 'notes', '协程里不要调用阻塞的文件读写，否则整个事件循环都会停下来。'),
    ('coder', 'project', 'notes', '新的推荐模型用了对比学习，离线指标涨了两个点，线上还在观察。'),
    ('coder', 'project', 'incident', '四月中旬消息队列堆积了三十万条，原因是消费者升级以后反序列化失败，每条消息都重试到上限才丢进死信队列。

处理过程：先暂停生产者，把旧版本的消费者放回去，确认积压开始下降，再用脚本把死信队列里的消息重新投递。整个过程用了两个小时，没有丢消息。

后来的改进：消息格式加了版本号，消费者遇到不认识的版本会跳过并报警，不再无限重试。灰度发布的时候先放一个消费者，观察十分钟再放其余的。

没有做的事：我们讨论过换一个消息中间件，结论是问题不在中间件，换了也一样会出错。'),
    ('planner', 'team', 'meeting', '周会改到星期二下午两点，请大家提前一天把进度写在文档里。'),
    ('planner', 'team', 'meeting', '小林负责这个季度的招聘，面试反馈要在二十四小时内提交。'),
    ('planner', 'team', 'notes', '报销要在月底之前提交，发票抬头写公司全称，金额超过五百要附审批单。'),
    ('planner', 'team', 'notes', '团队建设定在十月，大家投票选了爬山，下雨就改成看电影。'),
    ('planner', 'user', 'chat', '她喜欢喝乌龙茶，不喝咖啡，下午开会记得准备热水。'),
    ('planner', 'user', 'chat', '他的女儿九月上小学，那个月早上八点半之前不要安排会议。'),
    ('planner', 'user', 'chat', '奶奶的生日是农历八月初三，记得提前一周订蛋糕。'),
    ('planner', 'user', 'chat', '他对花生过敏，点外卖的时候要备注。'),
    ('librarian', 'global', 'reading', '苏州园林讲究移步换景，一扇漏窗就能把外面的竹子变成一幅画。'),
    ('librarian', 'global', 'reading', '敦煌壁画里的飞天没有翅膀，靠飘带表现飞行，这一点和西方的天使很不一样。'),
    ('librarian', 'global', 'reading', '老茶馆的掌柜说，泡茶的水温比茶叶的价钱更要紧。绿茶用八十度的水，水太烫会把嫩芽烫熟，喝起来发苦；乌龙要用刚烧开的水，不然香气出不来；普洱第一泡要倒掉，叫做醒茶。

他还说，看一个人会不会喝茶，不看他说什么，看他等不等得住。急着喝的人尝不出回甘，等到茶凉了一点再喝，味道才慢慢上来。

茶馆开了四十年，桌子换过三次，茶壶一直是那几把。客人问他为什么不换新的，他说紫砂壶养久了，倒进白水也有茶香。'),
    ('librarian', 'global', 'recipe', '红烧肉要先焯水，再用冰糖炒糖色，小火炖一个半小时，最后大火收汁。'),
    ('librarian', 'global', 'recipe', '蒸鱼的时候等水开了再放进去，八分钟就好，淋上热油和豉油。'),
    ('librarian', 'global', 'reading', '候鸟靠地磁场和星星辨认方向，城市的灯光会让它们迷路。'),
    ('coder', 'project', 'notes', '错误码 E4517 表示扫描枪的固件太旧，升级到 2.9 以上就能识别新标签。'),
    ('coder', 'project', 'chat', 'Kubernetes 集群的节点要打上标签，训练任务只调度到带显卡的节点。'),
    ('coder', 'project', 'chat', 'The Chinese landing page uses 思源黑体 as its font; the licence allows embedding.');
